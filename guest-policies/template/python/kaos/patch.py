"""Applies strategic merge patches to pod specs and containers, like `kubectl patch`.

The merge follows Go's strategicpatch, including the order of lists. It gives the same result as the library in Rust.
Three rules are only for policies. A member of the patch removes the members of the base that it excludes. The merge
refuses a patch with two members that exclude each other. The policy's own container stays first if the patch only adds
containers. The result never contains a directive or None.
"""

from kaos.merge import Merger, Mistake, name_of
from kaos.merge_table import CONTAINER, POD_SPEC
from kaos.quote import under
from kaos.refusal import invalid

def pod_spec(base, patch, own, root):
    """Merges the user's partial pod spec into the policy's pod spec. `own` is the name of the policy's container, which
    stays first unless the patch names it. `root` is the path of the patch in the object, for refusals."""
    merged = _merged(base, patch, POD_SPEC, root)
    containers = merged.get("containers")
    if isinstance(containers, list) and not _names(patch, own):
        containers.sort(key=lambda container: name_of(container) != own)
    return merged


def container(base, patch, root):
    """Merges the user's partial container into the policy's container."""
    return _merged(base, patch, CONTAINER, root)


def _merged(base, patch, of, root):
    try:
        return Merger(exclusive=True).run(base, patch, of)
    except Mistake as mistake:
        raise invalid(under(root, mistake.path), mistake.message) from None


def _names(patch, own):
    """Returns whether a patch mentions a container, in its containers or in their order."""
    lists = [patch.get(of) for of in ("containers", "$setElementOrder/containers")] if isinstance(patch, dict) else []
    return any(name_of(item) == own for items in lists if isinstance(items, list) for item in items)
