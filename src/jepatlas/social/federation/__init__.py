"""Federation without data: members share a folder, latents of agreed states and maps in it, and nothing else."""

from jepatlas.social.federation.joining import join
from jepatlas.social.federation.meeting import federate
from jepatlas.social.federation.member import Federation, Member
from jepatlas.social.federation.offers import Offer, offer_of
from jepatlas.social.federation.parcels import Absent, Exchange, Parcel, read_parcel, write_parcel
from jepatlas.social.federation.record import federation_record
from jepatlas.social.federation.states import agree, hide

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
