"""Prefect: its server with SQLite, and a process that serves the flows; each run is a process that it starts."""

import os
import sys
import urllib.request
from importlib.metadata import version

import measuring

DURABILITY = "SQLite with a write-ahead log that is synced at checkpoints only: a crash of the machine loses what came since"
# How often who serves flows looks for runs, in seconds. Its own choice is 10, which one run would mostly consist of.
LOOK_EVERY = "1"
# A deployment that nobody serves.
NOBODY = "nobody"


async def submit(name):
    """Runs of the deployment with this name."""
    from prefect.client.orchestration import get_client

    client = await get_client().__aenter__()
    deployment = await client.read_deployment_by_name(name)

    async def call():
        return str((await client.create_flow_run_from_deployment(deployment.id)).id)

    return call


def is_healthy(address):
    try:
        return urllib.request.urlopen(f"{address}/health", timeout=1).status == 200
    except OSError:
        return False


def main():
    with measuring.Bench(f"prefect {version('prefect')}", DURABILITY) as bench:
        port = measuring.free_port()
        address = f"http://127.0.0.1:{port}/api"
        os.environ |= {
            "PREFECT_HOME": str(bench.folder),
            "PREFECT_API_URL": address,
            "PREFECT_RUNNER_POLL_FREQUENCY": LOOK_EVERY,
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "PREFECT_LOGGING_LEVEL": "WARNING",
            "DO_NOT_TRACK": "1",
        }
        bench.start("server", "prefect", "server", "start", "--host", "127.0.0.1", "--port", port)
        measuring.wait_until("the server does not answer", lambda: is_healthy(address))
        # Reads its settings when it is imported.
        import work
        from prefect.client.orchestration import get_client
        from prefect.client.schemas.sorting import FlowRunSort
        from prefect.exceptions import ObjectNotFound

        client = get_client(sync_client=True).__enter__()
        bench.start("flows", sys.executable, work.__file__)

        def deployment(flow):
            return client.read_deployment_by_name(f"{flow.name}/bench")

        def is_served(flow):
            try:
                return deployment(flow)
            except ObjectNotFound:
                return False

        def end_of(id):
            """Looks at a run until it is completed."""

            def is_ended():
                state = client.read_flow_run(id).state
                if state.is_final() and not state.is_completed():
                    raise RuntimeError(f"a run ended as {state}")
                return state.is_completed()

            measuring.wait_until("a run did not end", is_ended, every=0.01)
            return client.read_flow_run(id).end_time.timestamp()

        def ended(ids):
            return max(end_of(id) for id in reversed(ids))

        def listed():
            newest = FlowRunSort.EXPECTED_START_TIME_DESC
            return len(client.read_flow_runs(sort=newest, limit=bench.order["listed"]))

        def run(flow):
            end_of(client.create_flow_run_from_deployment(deployment(flow).id).id)

        measuring.wait_until("the flows are not served", lambda: is_served(work.fan_out_of_400), every=0.2)
        client.create_deployment(client.create_flow(work.one_task), NOBODY)
        run(work.one_task)
        bench.measure("memory", bench.memory)
        bench.measure("one_run", lambda: bench.one_run(lambda: run(work.one_task)))
        bench.measure("chain", lambda: bench.whole(lambda: run(work.chain_of_40)))
        bench.measure("fan_out", lambda: bench.whole(lambda: run(work.fan_out_of_400)))
        name = work.one_task.name
        bench.measure("end_to_end", lambda: bench.end_to_end(ended, submit, f"{name}/bench"))
        bench.measure("submit", lambda: bench.submit(submit, f"{name}/{NOBODY}"))
        bench.measure("list", lambda: bench.lists(client.count_flow_runs(), listed))


if __name__ == "__main__":
    main()
