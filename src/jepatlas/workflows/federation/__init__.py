"""Federation without data: members exchange latents of agreed states and maps through a folder, and nothing else."""

from jepatlas.workflows.federation.agreed_states import agree, hide
from jepatlas.workflows.federation.exchange_folder import Absent, Message, read_message, write_message
from jepatlas.workflows.federation.federation_report import federation_record
from jepatlas.workflows.federation.federation_rounds import federate, join
from jepatlas.workflows.federation.member_data import Federation, Member, Offer, offer_of

__all__ = [
    "Absent",
    "Federation",
    "Member",
    "Message",
    "Offer",
    "agree",
    "federate",
    "federation_record",
    "hide",
    "join",
    "offer_of",
    "read_message",
    "write_message",
]
