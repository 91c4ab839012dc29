"""A flow resolver that builds the Flow object of a description (the IR of the flow contract, section 6.2)."""

import importlib
import json
import pathlib

from pyoco.core.models import Flow, Task
from pyoco.dsl import nodes
from pyoco.dsl.expressions import Expression


def resolve(name):
    path = pathlib.Path(__file__).parent / "flows" / name / "ir.json"
    if not path.exists():
        raise KeyError(name)
    ir = json.loads(path.read_text(encoding="utf-8"))
    tasks = {described["name"]: task(described) for described in ir["tasks"]}
    for described in ir["tasks"]:
        for before in described["deps"]:
            # A dependency that is no member of the flow is a task that nobody will run.
            before = tasks.get(before) or Task(func=len, name=before)
            tasks[described["name"]].dependencies.add(before)
    flow = Flow(name=ir["flow"], tasks=set(tasks.values()))
    if ir["mode"] == "program":
        flow._has_control_flow = True
        flow._definition = body(ir["program"], tasks).steps
    return flow


def task(described):
    module, _, attribute = described["callable"].partition(":")
    return Task(
        func=getattr(importlib.import_module(module), attribute),
        name=described["name"],
        inputs={key: argument(spec) for key, spec in described["inputs"].items()},
        outputs=described["outputs"],
        fail_policy=described["fail"],
        retries=described["retries"],
        timeout_sec=described["timeout_s"],
        trigger_policy=described["trigger"],
    )


def argument(spec):
    if "node" in spec:
        return ".".join(["$node", spec["node"], "output", *spec["path"]])
    if "param" in spec:
        return f"$ctx.params.{spec['param']}"
    if "env" in spec:
        return f"$env.{spec['env']}"
    return spec["invalid"] if "invalid" in spec else spec["lit"]


def body(steps, tasks):
    return nodes.SubFlowNode([step(described, tasks) for described in steps])


def step(described, tasks):
    kind = described["op"]
    if kind == "task":
        return nodes.TaskNode(tasks[described["task"]])
    if kind == "switch":
        cases = [
            # No value is equal to a new object.
            nodes.CaseNode(object() if case.get("never") else case["value"], body(case["body"], tasks))
            for case in described["cases"]
        ]
        if described["default"] is not None:
            cases.append(nodes.CaseNode(nodes.DEFAULT_CASE_VALUE, body(described["default"], tasks)))
        return nodes.SwitchNode(Expression(described["on"]["expr"]), cases)
    inside = body(described["body"], tasks)
    if kind == "repeat":
        count = described["count"]
        return nodes.RepeatNode(inside, Expression(count["expr"]) if isinstance(count, dict) else count)
    if kind == "foreach":
        source = Expression(described["over"]["expr"])
        return nodes.ForEachNode(inside, source, alias=described["item"], index_alias=described["index"])
    return nodes.UntilNode(inside, Expression(described["cond"]["expr"]), max_iter=described["max_iter"])
