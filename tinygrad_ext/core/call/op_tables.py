"""The tables of ops: registry/ fills them, and whoever stands below it looks an op up here when a call needs one."""

ops = {}  # "aten::add.Tensor" -> Op
functions = {}  # "nn.functional.relu", "ops.vision.roi_align" -> OpFunction
methods = {}  # "add", "add_" -> OpMethod
