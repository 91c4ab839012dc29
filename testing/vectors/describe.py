"""A Flow object of pyoco as data: the IR of the flow contract, section 6.2. Only reads, never runs a task."""

import inspect

REASONS = {
    "node": "expected '$node.<node>.output[.<field>...]'",
    "node name": "node name is required after '$node.'",
    "param": "parameter key is required after '$ctx.params.'",
    "ctx": "only '$ctx.params.<key>' is supported",
    "env": "environment key is required after '$env.'",
    "unknown": "unknown selector",
}


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
    parameters = inspect.signature(function).parameters.values()
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
        return {"lit": value}

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
