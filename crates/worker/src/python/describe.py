"""What a task host needs of the pyoco package: flows of a resolver as data, tasks of modules and plugins.

The data is the IR of a flow, version 1. Nothing here runs a task.
"""

import functools
import importlib.util
import os
import sys

from pyoco_task_values import is_plain, shown

REASONS = {
    "node": "expected '$node.<node>.output[.<field>...]'",
    "node name": "node name is required after '$node.'",
    "param": "parameter key is required after '$ctx.params.'",
    "ctx": "only '$ctx.params.<key>' is supported",
    "env": "environment key is required after '$env.'",
    "unknown": "unknown selector",
}


def resolver(address, import_module):
    """The function that builds flows: `module:function` or `path/file.py:function`."""
    place, _, name = address.rpartition(":")
    if not place or not name:
        raise ValueError(f"--flow-resolver '{address}' is neither module:function nor path/file.py:function")
    if not place.endswith(".py"):
        return attribute(import_module(place), name)
    path = os.path.abspath(place)
    folder = os.path.dirname(path)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module_name = os.path.splitext(os.path.basename(path))[0]
    module = sys.modules.get(module_name)
    if module is None:
        spec = importlib.util.spec_from_file_location(module_name, path)
        if spec is None or not os.path.exists(path):
            raise FileNotFoundError(f"--flow-resolver: there is no file {path}")
        module = importlib.util.module_from_spec(spec)
        sys.modules[module_name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[module_name]
            raise
    return attribute(module, name)


def attribute(module, name):
    """`Class.method` and longer ways are allowed."""
    return functools.reduce(getattr, name.split("."), module)


def discover(modules, import_module):
    """Tasks that the file need not define: specs, the plugins' Task objects, and what went wrong."""
    warnings, found = [], {}
    for name in modules:
        try:
            members = vars(import_module(name))
        except BaseException as error:
            warnings.append(f"discovery module '{name}' was left out: {type(error).__name__}: {error}")
            continue
        for variable, value in list(members.items()):
            task = as_task(value)
            if task is not None:
                found[variable] = {**task_ir(task, ()), "name": variable, "callable": f"{name}:{variable}"}
    registered, problems = plugins()
    for name, task in registered.items():
        found[name] = {**task_ir(task, ()), "name": name, "callable": None}
    return list(found.values()), registered, warnings + problems


def as_task(value):
    models, syntax = sys.modules.get("pyoco.core.models"), sys.modules.get("pyoco.dsl.syntax")
    if syntax is not None and isinstance(value, syntax.TaskWrapper):
        return value.task
    return value if models is not None and isinstance(value, models.Task) else None


class Registered:
    """Takes what plugins register, in place of pyoco's own loader."""

    def __init__(self):
        self.tasks = {}

    def _register_task(self, name, task):
        self.tasks[name] = task


def plugins():
    """Tasks that the entry points of group pyoco.tasks register."""
    try:
        from pyoco.discovery.plugins import PluginRegistry, iter_entry_points
    except ImportError as error:
        return {}, [f"plugins of group pyoco.tasks were left out: {error}"]
    loader, problems = Registered(), []
    for entry in iter_entry_points():
        try:
            entry.load()(PluginRegistry(loader, entry.name))
        except BaseException as error:
            problems.append(f"plugin '{entry.name}' was left out: {type(error).__name__}: {error}")
    return loader.tasks, problems


def flow_ir(flow):
    members = sorted(flow.tasks, key=lambda task: task.name)
    names = {task.name for task in members}
    program = [step_ir(step) for step in flow.build_program().steps] if flow.has_control_flow() else None
    return {
        "ir": 1,
        "flow": flow.name,
        "mode": "dag" if program is None else "program",
        "tasks": [task_ir(task, names) for task in members],
        "program": program,
    }


def task_ir(task, names):
    ir = {
        "name": task.name,
        "callable": address(task.func),
        "signature": signature_ir(task.func),
        "inputs": {key: input_ir(value) for key, value in task.inputs.items()},
        "outputs": list(task.outputs),
        "deps": sorted(other.name for other in task.dependencies),
        "trigger": "ANY" if task.trigger_policy == "ANY" else "ALL",
        "fail": "isolate" if task.fail_policy == "isolate" else "stop",
        "retries": task.retries,
        "timeout_s": float(task.timeout_sec) if task.timeout_sec else None,
    }
    outside = sorted(other.name for other in task.dependencies if other.name not in names)
    if outside:
        ir["deps_outside_flow"] = outside
    return ir


def address(function):
    name = getattr(function, "__qualname__", None)
    return None if name is None or "<" in name else f"{function.__module__}:{name}"


def signature_ir(function):
    import inspect

    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some builtins have none; the call will say so
        return None
    listed = [
        {"name": parameter.name, "kind": parameter.kind.name, "required": is_required(parameter)}
        for parameter in parameters
    ]
    return {"params": listed, "wants_ctx": any(parameter.name == "ctx" for parameter in parameters)}


def is_required(parameter):
    variadic = (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    return parameter.default is parameter.empty and parameter.kind not in variadic


def input_ir(value):
    if not isinstance(value, str) or not value.startswith("$"):
        # An object that JSON cannot hold is taken from the flow itself when the task runs.
        return {"lit": value if is_plain(value, 0) else shown(value)[0]}

    def invalid(which):
        return {"invalid": value, "reason": REASONS[which]}

    if value.startswith("$node."):
        parts = value.split(".")
        if len(parts) < 3 or parts[2] != "output":
            return invalid("node")
        return {"node": parts[1], "path": parts[3:]} if parts[1] else invalid("node name")
    if value.startswith("$ctx.params."):
        key = value[len("$ctx.params.") :]
        return {"param": key} if key else invalid("param")
    if value.startswith("$ctx."):
        return invalid("ctx")
    if value.startswith("$env."):
        key = value[len("$env.") :]
        return {"env": key} if key else invalid("env")
    return invalid("unknown")


def expression_ir(expression):
    return {"expr": expression.source}


def step_ir(step):
    from pyoco.dsl import nodes

    def body(subflow):
        return [step_ir(inner) for inner in subflow.steps]

    if isinstance(step, nodes.TaskNode):
        return {"op": "task", "task": step.task.name}
    if isinstance(step, nodes.RepeatNode):
        count = step.count if isinstance(step.count, int) else expression_ir(step.count)
        return {"op": "repeat", "count": count, "body": body(step.body)}
    if isinstance(step, nodes.ForEachNode):
        over = expression_ir(step.source)
        return {"op": "foreach", "over": over, "item": step.alias, "index": step.index_alias, "body": body(step.body)}
    if isinstance(step, nodes.UntilNode):
        condition = expression_ir(step.condition)
        return {"op": "until", "cond": condition, "max_iter": step.max_iter or 1000, "body": body(step.body)}
    cases = [case for case in step.cases if case.value != nodes.DEFAULT_CASE_VALUE]
    defaults = [case for case in step.cases if case.value == nodes.DEFAULT_CASE_VALUE]
    return {
        "op": "switch",
        "on": expression_ir(step.expression),
        "cases": [{**case_value(case.value), "body": body(case.target)} for case in cases],
        "default": body(defaults[0].target) if defaults else None,
    }


def case_value(value):
    plain = value is None or isinstance(value, (str, int, float))
    return {"value": value} if plain else {"never": True}
