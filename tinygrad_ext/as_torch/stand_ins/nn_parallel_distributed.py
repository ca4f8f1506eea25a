"""torch.nn.parallel.distributed: a module whose gradients would be averaged over a group, of which it is all."""

import contextlib

from tinygrad_ext.nn import Module

from . import distributed_group as _groups

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """A module that hands its input on: in a group of one process a mean of gradients is the gradient.

    Args:
        module: the model, with a parameter that requires a gradient; names of its parameters begin with ``module.``.
        device_ids: none, for the device is the cpu.

    Raises:
        ValueError: no group of processes is initialized, or devices are given.
    """

    def __init__(
        self,
        module,
        device_ids=None,
        output_device=None,
        dim=0,
        broadcast_buffers=True,
        init_sync=True,
        process_group=None,
        find_unused_parameters=False,
        static_graph=False,
        **kwargs,
    ):
        group = _groups.member(process_group)
        if not any(parameter.requires_grad for parameter in module.parameters()):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a"
                " gradient: call the module itself"
            )
        if device_ids or output_device is not None:
            raise ValueError(
                f"DistributedDataParallel: device_ids is {device_ids} and output_device {output_device}, expected None:"
                " the module is on the cpu"
            )
        super().__init__()
        self.module, self.dim = module, dim
        self.device_ids, self.output_device, self.process_group = None, None, group
        self.broadcast_buffers, self.find_unused_parameters = broadcast_buffers, find_unused_parameters
        self.static_graph, self.require_backward_grad_sync, self.require_forward_param_sync = static_graph, True, True
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        self.device = next(iter(module.parameters())).device
        self.device_type = self.device.type

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)

    @contextlib.contextmanager
    def no_sync(self):
        """Within it gradients are kept to oneself, which they are anyway."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def join(self, divide_by_initial_world_size=True, enable=True, throw_on_early_termination=False):
        """A context for processes with unequal numbers of batches: there is one."""
        return contextlib.nullcontext(self)

    def register_comm_hook(self, state, hook):
        """Refused with NotImplementedError: gradients are not sent anywhere."""
        raise NotImplementedError(
            "torch.nn.parallel.DistributedDataParallel.register_comm_hook: gradients are not sent anywhere in a"
            " group of one process; hooks of parameters see them"
        )
