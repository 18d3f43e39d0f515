"""Text from clients into JSON values, under limits that hold before anything is built.

Every decoder here is linear in its input. ``limits`` states how large, deep and dense a document
may be; what exceeds a limit is refused, never truncated.
"""

from skerry.logic.machinery.decoding.json_text import decode_json, refuse_size
from skerry.logic.machinery.decoding.limits import DecodeError, LimitExceeded, Limits
from skerry.logic.machinery.decoding.yaml_text import decode_yaml

__all__ = ["DecodeError", "LimitExceeded", "Limits", "decode_json", "decode_yaml", "refuse_size"]
