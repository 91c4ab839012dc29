import os
import time


def hold(started, release):
    open(started, "w").close()
    while not os.path.exists(release):
        time.sleep(0.01)
