"""Masks of attention by blocks: which blocks of keys a block of queries sees wholly, in part, or not at all."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.later import later
from tinygrad_ext.registry import functions


def over_scores(function, with_score):
    """A function of (score, batch, head, query, key), or of all but the score, over vectors of indices."""
    vmap = later("vmap").vmap
    first = (0,) if with_score else ()
    for where in ((None, None, None, 0), (None, None, 0, None), (None, 0, None, None), (0, None, None, None)):
        function = vmap(function, in_dims=first + where, out_dims=0)
    return function


def indices(sizes, device):
    return [tg.arange(n, device=device) for n in sizes]


def pair(size):
    return (size, size) if isinstance(size, int) else tuple(size)


def _ordered(blocks):
    """(how many blocks of each row are set, their numbers first in each row), as int32."""
    order = tg.argsort(blocks.int(), dim=-1, descending=True, stable=True)
    return blocks.sum(-1).int(), order.int().contiguous()


def _dense(count, order):
    """The blocks that the numbers name: 0 or 1, as int32."""
    rows, columns = order.shape[-2:]
    places = tg.arange(columns, device=order.device)
    named = tg.where(places < count.unsqueeze(-1), order.long(), columns)
    found = tg.zeros(*order.shape[:-2], rows, columns + 1, dtype=tg.int32, device=order.device)
    return found.scatter_(-1, named, 1)[..., :columns].contiguous()


_TENSORS = (
    "kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices",
    "q_num_blocks", "q_indices", "full_q_num_blocks", "full_q_indices",
)  # fmt: skip


class BlockMask:
    """A mask of attention of sizes (B, H, queries, keys) by blocks of ``BLOCK_SIZE``; B and H may be 1 for all.

    Attributes:
        kv_num_blocks, kv_indices: of each block of queries, how many blocks of keys it sees partly, (B, H, rows) int32,
            and which these are, first in (B, H, rows, columns) int32; ``mask_mod`` says what is seen inside.
        full_kv_num_blocks, full_kv_indices: the same of those seen wholly, or None.
        q_num_blocks, q_indices, full_q_num_blocks, full_q_indices: the same by blocks of keys, or None.
        mask_mod: function of (batch, head, query, key) that says whether the query sees the key.
        seq_lengths: (queries, keys). BLOCK_SIZE: (queries, keys) of a block.
    """

    def __init__(
        self, seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks=None, full_kv_indices=None, q_num_blocks=None,
        q_indices=None, full_q_num_blocks=None, full_q_indices=None, BLOCK_SIZE=128, mask_mod=None,
    ):  # fmt: skip
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices
        self.seq_lengths, self.BLOCK_SIZE = tuple(seq_lengths), pair(BLOCK_SIZE)
        self.mask_mod = noop_mask if mask_mod is None else mask_mod

    @classmethod
    @boundary
    def from_kv_blocks(
        cls, kv_num_blocks, kv_indices, full_kv_num_blocks=None, full_kv_indices=None, BLOCK_SIZE=128, mask_mod=None,
        seq_lengths=None, compute_q_blocks=True,
    ):  # fmt: skip
        """A mask of the blocks of keys that each block of queries sees; see the attributes.

        Raises:
            RuntimeError: for kv_indices of less than 2 dimensions.
            AssertionError: for one of full_kv_num_blocks and full_kv_indices without the other.
        """
        if kv_indices.dim() < 2:
            raise RuntimeError(
                f"BlockMask: kv_indices must have at least 2 dimensions, got shape {list(kv_indices.shape)}"
            )
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("BlockMask: full_kv_num_blocks and full_kv_indices are given together, or neither")
        given = [kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices]
        turned = [None] * 4
        if compute_q_blocks:
            turned[:2] = _ordered(_dense(*given[:2]).mT)
            if full_kv_indices is not None:
                turned[2:] = _ordered(_dense(*given[2:]).mT)
        size = pair(BLOCK_SIZE)
        if seq_lengths is None:
            seq_lengths = kv_indices.shape[-2] * size[0], kv_indices.shape[-1] * size[1]
        return cls(seq_lengths, *given, *turned, size, mask_mod)

    def as_tuple(self, flatten=True):
        """(queries, keys, all tensors, queries and keys of a block, mask_mod); sizes in pairs unless it is flat."""
        tensors = tuple([getattr(self, name) for name in _TENSORS])
        if flatten:
            return *self.seq_lengths, *tensors, *self.BLOCK_SIZE, self.mask_mod
        return self.seq_lengths, *tensors, self.BLOCK_SIZE, self.mask_mod

    @property
    def shape(self):
        """(B, H, queries, keys)."""
        return *self.kv_indices.shape[:-2], *self.seq_lengths

    def numel(self):
        """How many scores there are."""
        count = 1
        for n in self.shape:
            count *= n
        return count

    def sparsity(self):
        """How many of a hundred scores are in blocks that nobody sees; below 0 where the last blocks are not filled."""
        seen = int(self.kv_num_blocks.sum())
        seen += 0 if self.full_kv_num_blocks is None else int(self.full_kv_num_blocks.sum())
        return 100 * (1 - seen * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def to_dense(self):
        """1 for the blocks that are seen, wholly or in part: (B, H, rows, columns) int32."""
        found = _dense(self.kv_num_blocks, self.kv_indices)
        return found if self.full_kv_indices is None else found | _dense(self.full_kv_num_blocks, self.full_kv_indices)

    def to(self, device):
        """The mask with its tensors on a device."""
        moved = [t if t is None else t.to(device) for t in (getattr(self, name) for name in _TENSORS)]
        return type(self)(self.seq_lengths, *moved, self.BLOCK_SIZE, self.mask_mod)

    def __getitem__(self, index):
        """The blocks of some batches, heads and blocks of queries; a number keeps its dimension.

        Its ``mask_mod`` is to be given anew: the numbers of batch, head and query have become others.
        """
        index = index if isinstance(index, tuple) else (index,)
        sizes = self.kv_num_blocks.shape
        index = [i + n if isinstance(i, int) and i < 0 else i for i, n in zip(index, sizes)]
        kept = tuple([slice(i, i + 1) if isinstance(i, int) else i for i in index])
        given = [t if t is None else t[kept] for t in (getattr(self, name) for name in _TENSORS[:4])]
        return type(self).from_kv_blocks(
            *given, self.BLOCK_SIZE, _sliced, self.seq_lengths, compute_q_blocks=self.q_indices is not None
        )

    def to_string(self, grid_size=(20, 20), limit=4):
        """The blocks of the first heads as characters: full, in part, or blank; of many blocks several in one."""
        part = _dense(self.kv_num_blocks, self.kv_indices)
        full = tg.zeros_like(part)
        if self.full_kv_indices is not None:
            full = _dense(self.full_kv_num_blocks, self.full_kv_indices)
        rows, columns = part.shape[-2:]
        most = (rows, columns) if grid_size == -1 else pair(grid_size)
        steps = [-(-n // m) for n, m in zip((rows, columns), most)]
        heads = [*zip(part.reshape(-1, rows, columns).tolist(), full.reshape(-1, rows, columns).tolist())]
        return "\n\n".join(_picture(*head, steps) for head in heads[:limit]) + ("\n\n..." if len(heads) > limit else "")

    def __str__(self):
        text = self.to_string().replace("\n", "\n    ")
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%,\n    {text}\n)"

    def __repr__(self):
        told = [f"{name}={getattr(getattr(self, name), 'shape', None)}" for name in _TENSORS]
        told += [f"BLOCK_SIZE={self.BLOCK_SIZE}", f"shape={self.shape}", f"sparsity={self.sparsity():.2f}%"]
        told += [f"mask_mod={getattr(self.mask_mod, '__name__', self.mask_mod)}"]
        return "BlockMask(\n    " + ",\n    ".join(told) + "\n)"


def _picture(part, full, steps):
    rows = []
    for top in range(0, len(part), steps[0]):
        line = ""
        for left in range(0, len(part[0]), steps[1]):
            cells = [
                (part[i][j], full[i][j])
                for i in range(top, min(top + steps[0], len(part)))
                for j in range(left, min(left + steps[1], len(part[0])))
            ]
            line += "██" if all(f for _, f in cells) else "░░" if any(p or f for p, f in cells) else "  "
        rows.append(line)
    return "\n".join(rows)


def _sliced(batch, head, token_q, token_kv):
    raise RuntimeError("Cannot use mask_mod from a sliced BlockMask: set mask_mod to a function for the slice first")


def noop_mask(batch, head, token_q, token_kv):
    """Every query sees every key."""
    return batch.new_ones((), dtype=tg.bool)


def _joined(name, mods, first, join):
    for mod in mods:
        if not callable(mod):
            raise RuntimeError(f"{name}: all inputs should be callable mask_mods, got {mod!r}")

    def mask(b, h, q_idx, kv_idx):
        found = b.new_full((), first, dtype=tg.bool)
        for mod in mods:
            found = join(found, mod(b, h, q_idx, kv_idx))
        return found

    return mask


@boundary
def or_masks(*mask_mods):
    """The function that says yes where one of several mask functions does.

    Raises:
        RuntimeError: for what cannot be called.
    """
    return _joined("or_masks", mask_mods, False, tg.logical_or)


@boundary
def and_masks(*mask_mods):
    """The function that says yes where all of several mask functions do.

    Raises:
        RuntimeError: for what cannot be called.
    """
    return _joined("and_masks", mask_mods, True, tg.logical_and)


@boundary
def create_mask(mod_fn, B, H, Q_LEN, KV_LEN, device=None):
    """What a function of (batch, head, query, key) says of all, (B, H, Q_LEN, KV_LEN) bool; B and H None for 1.

    A function with a score before these is given zeros, and hides what it turns into -inf.

    Raises:
        AssertionError: for a function that takes neither four nor five arguments.
    """
    sizes = (1 if B is None else B), (1 if H is None else H), Q_LEN, KV_LEN
    count = _positional(mod_fn)
    if count not in (4, 5):
        raise AssertionError(f"create_mask: mod_fn must take 4 arguments, or 5 with a score, not {count}")
    given = indices(sizes, device)
    if count == 5:
        return over_scores(mod_fn, True)(tg.zeros(*sizes, device=device), *given) != -float("inf")
    return over_scores(mod_fn, False)(*given).expand(*sizes)


def _positional(function):
    import inspect  # lazy: half a millisecond, for who makes a mask

    try:
        kinds = [p.kind for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    except (TypeError, ValueError):
        return 4
    return len([k for k in kinds if k.name in ("POSITIONAL_ONLY", "POSITIONAL_OR_KEYWORD")])


@boundary
def create_block_mask(
    mask_mod, B, H, Q_LEN, KV_LEN, device=None, BLOCK_SIZE=128, _compile=False, separate_full_blocks=True,
    compute_dq_write_order=False, dq_kv_order=True,
):  # fmt: skip
    """The BlockMask of a function of (batch, head, query, key), which are tensors without dimensions.

    Args:
        B, H: batches and heads that the function tells apart, or None for one mask for all.
        BLOCK_SIZE: queries and keys of a block, or one number for both.
        separate_full_blocks: whether blocks that are seen wholly are listed apart.

    Raises:
        AssertionError: for a function that does not take four arguments.
    """
    if _positional(mask_mod) != 4:
        raise AssertionError("create_block_mask: mask_mod must take batch, head, query and key: four arguments")
    size = pair(BLOCK_SIZE)
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    mask = functions["nn.functional.pad"](mask, (0, -KV_LEN % size[1], 0, -Q_LEN % size[0]))
    seen = mask.unflatten(-1, (-1, size[1])).unflatten(-3, (-1, size[0])).sum((-1, -3))
    full = seen == size[0] * size[1] if separate_full_blocks else tg.zeros_like(seen, dtype=tg.bool)
    given = [*_ordered((seen > 0) & ~full), *(_ordered(full) if separate_full_blocks else (None, None))]
    return BlockMask.from_kv_blocks(*given, BLOCK_SIZE=size, mask_mod=mask_mod, seq_lengths=(Q_LEN, KV_LEN))
