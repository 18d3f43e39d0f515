"""The three patch formats of the Kubernetes API, as pure functions from object to object.

No input is ever changed; results share whatever the patch left alone, so both the original and
the result must be treated as read-only afterwards. Failures are ``api.errors`` with the codes and
words of kube-apiserver 1.32, save that nothing a client can send ends in a 500.
"""

from skerry.logic.machinery.patch.diff import two_way_merge_patch
from skerry.logic.machinery.patch.json_patch import apply_json_patch
from skerry.logic.machinery.patch.merge_patch import apply_merge_patch
from skerry.logic.machinery.patch.strategic import apply_strategic_patch

__all__ = [
    "apply_json_patch",
    "apply_merge_patch",
    "apply_strategic_patch",
    "two_way_merge_patch",
]
