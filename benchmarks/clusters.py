"""An ssh server, a Slurm cluster of one node and a Ray cluster of two on this machine, which end with their `with`.

Two are Debian's: `apt-get install --no-install-recommends openssh-server slurmctld slurmd slurm-client munge`. EvoGit's
extras `slurm` and `ray` bring the rest. Nothing of the machine's own settings is read or changed: ports, keys, sockets
and logs are theirs alone.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"

PRIVILEGE_SEPARATION = Path("/run/sshd")
"""An empty folder that an sshd of root insists on."""

SSHD = """
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
PidFile none
PasswordAuthentication no
StrictModes no
UsePAM no
"""

SLURM = """
ClusterName=trial
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={controller}
SlurmdPort={node}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
MinJobAge=10
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU=1024
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 RealMemory=16000
PartitionName=main Nodes=ALL Default=YES
"""
"""The node says that it has eight cores, whatever it has: evaluations that sleep need none."""


def missing(*programs: str) -> str:
    """Those of these programs that are not on this machine, in words for a reason to skip; empty if there are all."""
    lacking = [program for program in programs if not shutil.which(program, path=PATH)]
    return f"{', '.join(lacking)} is not installed" if lacking else ""


@contextlib.contextmanager
def ssh_server(folder: Path) -> Iterator[list[str]]:
    """The words of an `ssh` that logs in on this machine without a password."""
    for name in ("host_key", "key"):
        _do("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name))
    port = _free_port()
    (folder / "sshd_config").write_text(SSHD.format(port=port, folder=folder))
    ours = os.getuid() == 0 and not PRIVILEGE_SEPARATION.exists()
    if ours:
        PRIVILEGE_SEPARATION.mkdir(mode=0o755)
    options = {"UserKnownHostsFile": str(folder / "known"), "StrictHostKeyChecking": "accept-new", "BatchMode": "yes"}
    words = [each for name, value in options.items() for each in ("-o", f"{name}={value}")]
    try:
        with _daemon(folder, "sshd", "-D", "-e", "-f", str(folder / "sshd_config")):
            _wait(lambda: _listens(port), folder)
            yield ["ssh", "-F", "none", "-p", str(port), "-i", str(folder / "key"), *words, "127.0.0.1"]
    finally:
        if ours:
            PRIVILEGE_SEPARATION.rmdir()


@contextlib.contextmanager
def slurm(folder: Path) -> Iterator[dict[str, str]]:
    """The environment in which `srun`, `sbatch` and the like find a cluster of one node with one partition, `main`."""
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o600)
    (folder / "state").mkdir()
    (folder / "spool").mkdir()
    configuration, user = folder / "slurm.conf", Path("~").expanduser().owner()
    about = {"host": os.uname().nodename, "user": user, "controller": _free_port(), "node": _free_port()}
    configuration.write_text(SLURM.format(folder=folder, **about))
    environment = {"SLURM_CONF": str(configuration)}
    own = [
        f"--{what}={folder}/munge.{what.partition('-')[0]}" for what in ("socket", "key-file", "pid-file", "log-file")
    ]
    with (
        _daemon(folder, "munged", "--foreground", "--force", f"--seed-file={folder}/munge.seed", *own),
        _daemon(folder, "slurmctld", "-D", "-c", **environment),
        _daemon(folder, "slurmd", "-D", **environment),
    ):
        _wait(lambda: "idle" in _said(environment, "sinfo", "--noheader", "--format=%T"), folder)
        try:
            yield environment
        finally:
            _said(environment, "scancel", "--partition=main")
            _wait(lambda: not _said(environment, "squeue", "--noheader"), folder)


@contextlib.contextmanager
def ray_nodes() -> Iterator[str]:
    """The address of a cluster of two nodes, each with room for one worker, as it says."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        for _ in range(2):
            cluster.add_node(num_cpus=1, memory=8 << 30)
        yield cluster.address
    finally:
        cluster.shutdown()


@contextlib.contextmanager
def _daemon(folder: Path, program: str, *arguments: str, **environment: str) -> Iterator[None]:
    path = shutil.which(program, path=PATH) or program
    with (folder / f"{program}.out").open("wb") as out:
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", path, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env={**os.environ, **environment},
        )
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def _do(*words: str) -> None:
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def _said(environment: dict[str, str], *words: str) -> str:
    done = subprocess.run(words, env={**os.environ, **environment}, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _wait(ready: Callable[[], object], folder: Path) -> None:
    until = time.monotonic() + 60
    while not ready():
        if time.monotonic() > until:
            raise TimeoutError("\n".join(file.read_text()[-500:] for file in folder.glob("*.out")))
        time.sleep(0.1)
