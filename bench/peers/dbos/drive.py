"""DBOS with SQLite, in one process that runs its own workflows, as its users embed it. What is submitted to nobody is enqueued by its client instead.
"""

import os
import sys
from importlib.metadata import version

import measuring
import pysqlite3

# The SQLite of many a Python is too old for it.
sys.modules["sqlite3"] = pysqlite3

DURABILITY = "SQLite with a rollback journal, as it comes: synced at every commit, several commits a run"
URL = "PEER_DBOS"


def launch():
    """This process becomes one that runs workflows."""
    from dbos import DBOS

    # An executor of its own for each process, else it would take the workflows of another for its own and recover them.
    os.environ["DBOS__VMID"] = str(os.getpid())
    DBOS(config={"name": "bench", "system_database_url": os.environ[URL], "run_admin_server": False, "log_level": "WARNING"})
    import work

    DBOS.launch()
    return work


def submit():
    from dbos import DBOS

    work = launch()
    return lambda: DBOS.start_workflow(work.one_task).workflow_id


def submit_to_nobody():
    from dbos import DBOSClient

    client = DBOSClient(system_database_url=os.environ[URL])
    options = {"workflow_name": "one_task", "queue_name": "nobody"}
    return lambda: client.enqueue(options).workflow_id


def main():
    with measuring.Bench(f"dbos {version('dbos')}", DURABILITY, calling_processes=1) as bench:
        os.environ[URL] = f"sqlite:///{bench.folder}/dbos.sqlite"
        from dbos import DBOS

        work = launch()

        def run(workflow):
            DBOS.start_workflow(workflow).get_result()

        def ended(ids):
            for id in reversed(ids):
                measuring.wait_until("a workflow did not end", lambda: DBOS.get_workflow_status(id).status == "SUCCESS", every=0.01)
            return max(DBOS.get_workflow_status(id).updated_at for id in ids) / 1_000

        def listed():
            return len(DBOS.list_workflows(limit=bench.order["listed"], sort_desc=True))

        run(work.one_task)
        bench.measure("memory", lambda: bench.memory(os.getpid()))
        bench.measure("one_run", lambda: bench.one_run(lambda: run(work.one_task)))
        bench.measure("chain", lambda: bench.whole(lambda: run(work.chain_of_40)))
        bench.measure("fan_out", lambda: bench.whole(lambda: run(work.fan_out_of_400)))
        bench.measure("end_to_end", lambda: bench.end_to_end(ended, submit))
        bench.measure("submit", lambda: bench.submit(submit_to_nobody))
        bench.measure("list", lambda: bench.lists(len(DBOS.list_workflows(load_input=False, load_output=False)), listed))


if __name__ == "__main__":
    main()
