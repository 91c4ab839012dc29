"""The flows of the bench for Prefect, and a process that serves them: work.py. Two runs at once."""

from prefect import flow, serve, task

RUNS_AT_ONCE = 2


@task
def tick():
    """Does nothing."""


@flow
def one_task():
    tick()


@flow
def chain_of_40():
    for _ in range(40):
        tick()


@flow
def fan_out_of_400():
    """One task, then 400 at once, then one."""
    tick()
    for future in [tick.submit() for _ in range(400)]:
        future.result()
    tick()


if __name__ == "__main__":
    flows = [one_task, chain_of_40, fan_out_of_400]
    serve(*(each.to_deployment(name="bench") for each in flows), limit=RUNS_AT_ONCE)
