"""Federation without data: members share a folder, latents of agreed states and maps in it, and nothing else."""

from jepatlas.workflows.federation.joining import join
from jepatlas.workflows.federation.meeting import federate
from jepatlas.workflows.federation.member import Federation, Member
from jepatlas.workflows.federation.offers import Offer, offer_of
from jepatlas.workflows.federation.parcels import Absent, Exchange, Parcel, read_parcel, write_parcel
from jepatlas.workflows.federation.record import federation_record
from jepatlas.workflows.federation.states import agree, hide

__all__ = [
    "Absent",
    "Exchange",
    "Federation",
    "Member",
    "Offer",
    "Parcel",
    "agree",
    "federate",
    "federation_record",
    "hide",
    "join",
    "offer_of",
    "read_parcel",
    "write_parcel",
]
