"""Celery with a Redis as broker and as store of results: one worker with two processes."""

import os
import shutil
import subprocess
from datetime import UTC
from importlib.metadata import version

import measuring

DURABILITY = "Redis in memory; a snapshot every minute to every hour, as installed: a crash loses what came since. A task is acknowledged before it runs"
PATIENCE = measuring.PATIENCE


def submit_to_nobody():
    import work

    return lambda: work.tick.apply_async(queue="nobody").id


def submit():
    import work

    return lambda: work.tick.apply_async().id


def main():
    redis = shutil.which("redis-server") or "redis-server"
    told = subprocess.run([redis, "--version"], capture_output=True, text=True, check=True).stdout
    redis_version = next(word[2:] for word in told.split() if word.startswith("v="))
    with measuring.Bench(f"celery {version('celery')}, redis {redis_version}", DURABILITY) as bench:
        port = measuring.free_port()
        bench.start("redis", redis, "--port", port, "--bind", "127.0.0.1", "--dir", bench.folder)
        measuring.wait_until("redis does not listen", lambda: measuring.listens(port))
        # For the callers, the worker and this process.
        os.environ["PEER_REDIS"] = f"redis://127.0.0.1:{port}/0"
        import work

        def ended(ids):
            results = [work.app.AsyncResult(id) for id in ids]
            for result in reversed(results):
                measuring.wait_until("a task did not end", result.ready, every=0.01)
            return max(result.date_done.replace(tzinfo=UTC).timestamp() for result in results)

        bench.start("worker", "celery", "--app", "work", "worker", "--concurrency", 2, "--loglevel", "WARNING")
        work.tick.apply_async().get(PATIENCE)
        bench.measure("memory", bench.memory)
        bench.measure("one_run", lambda: bench.one_run(lambda: work.tick.apply_async().get(PATIENCE)))
        bench.measure("chain", lambda: bench.whole(lambda: work.chain_of_40().apply_async().get(PATIENCE)))
        bench.measure("fan_out", lambda: bench.whole(lambda: work.fan_out_of_400().apply_async().get(PATIENCE)))
        bench.measure("end_to_end", lambda: bench.end_to_end(ended, submit))
        bench.measure("submit", lambda: bench.submit(submit_to_nobody))


if __name__ == "__main__":
    main()
