"""One experiment of the engine ``sharing``: ``python -m tiercel.sharing LOAD FOLDER RESULT WORKLOAD``.

LOAD is the program fairshare-load, FOLDER the run's own on the storage, WORKLOAD a workload as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tiercel.errors import Interrupted, RunFailed, UserError
from tiercel.interruption import unwind_when_interrupted
from tiercel.sharing.application_experiment import application_experiment
from tiercel.sharing.experiment import experiment
from tiercel.sharing.servers_experiment import servers_experiment
from tiercel.sharing.workload import SharingWorkload
from tiercel.sharing.workload_application import SharingApplicationWorkload
from tiercel.sharing.workload_servers import SharingServersWorkload


def _carry_out(load: Path, folder: Path, document: str) -> dict[str, Any]:
    operation = json.loads(document)["operation"]
    if operation == "sharing-application":
        application = SharingApplicationWorkload.model_validate_json(document)
        return application_experiment(load, folder, application)
    if operation == "sharing-servers":
        return servers_experiment(folder, SharingServersWorkload.model_validate_json(document))
    return experiment(load, folder, SharingWorkload.model_validate_json(document))


def main(arguments: list[str]) -> int:
    """Run the experiment and write its result by rename, so that half a one is none."""
    load, folder, result, document = arguments
    unwind_when_interrupted()
    try:
        found = _carry_out(Path(load), Path(folder), document)
    except (RunFailed, UserError) as error:
        print(f"sharing: error: {error}", file=sys.stderr)
        return 1
    except (KeyboardInterrupt, Interrupted):
        print("sharing: error: interrupted", file=sys.stderr)
        return 130
    aside = Path(result + ".new")
    aside.write_text(json.dumps(found))
    aside.rename(result)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
