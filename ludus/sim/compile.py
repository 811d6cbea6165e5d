"""Compiles a program for CPU threads and for CUDA. The only file that imports numba.

A driver is the loop over envs and lanes around a program's phases, made as source;
`driver_cache.py` keeps it.
"""

from __future__ import annotations

import functools
import pickle
import sys
import time
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import cgutils, ir
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.errors import NumbaError, UnsupportedBytecodeError
from numba.core.serialize import dumps
from numba.extending import intrinsic

from ludus.errors import LudusError, RuleError
from ludus.sim.driver_cache import KernelFile, forget, load_driver
from ludus.sim.explain import explain
from ludus.sim.interpret import lane_at
from ludus.sim.interrupts import interruptible
from ludus.sim.layout import Layout, number
from ludus.sim.link import Linker, reachable
from ludus.sim.program import Call, Program

numba.config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # type: ignore[attr-defined]
# OpenMP alternates with torch's own threads at the lowest cost.
numba.config.THREADING_LAYER = "omp"  # type: ignore[attr-defined]

# Rules allocate nothing, so reference counting is off: it cost more than the rules. Phases are
# inlined into the driver. Only drivers are called from Python: wrappers for every helper, with its
# dozens of arrays, were a third of the compile time.
_OPTIONS: dict[str, Any] = dict(
    nogil=True, error_model="numpy", _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True
)


def _make_linker(**options: Any) -> Linker:
    return Linker(
        numba.njit(**_OPTIONS, **options),
        numba.njit(forceinline=True, **_OPTIONS, **options),
        compiled=True,
    )


_linker = _make_linker()
_checked_linker = _make_linker(boundscheck=True)


# -- drivers as source -----------------------------------------------------------------------------


def _function_names(program: Program) -> dict[str, Callable]:
    functions = [phase.function for phase in program.phases]
    return {f"{function.__name__}_{i}": function for i, function in enumerate(functions)}


def _call_line(program: Program, call: Call, indices: list[str]) -> str:
    number = program.phases.index(call.phase)
    name = f"{call.phase.function.__name__}_{number}"
    return f"{name}({', '.join(['env', *indices, *call.phase.fields])})"


def _grouped(calls: tuple[Call, ...]) -> Iterator[list[Call]]:
    """Bots together (a lane has one controller), everything else alone."""
    group: list[Call] = []
    for call in calls:
        if call.controller is not None:
            group.append(call)
            continue
        if group:
            yield group
            group = []
        yield [call]


def _body(program: Program, group: list[Call], indices: list[str]) -> list[str]:
    if group[0].controller is None:
        return [_call_line(program, group[0], indices)]
    lines = [f"bot = controller[env, {indices[0]}]", f"if bot != 0 and alive[env, {indices[0]}]:"]
    for i, call in enumerate(group):
        lines += [
            f"    {'elif' if i else 'if'} bot == {call.controller}:",
            f"        {_call_line(program, call, indices)}",
        ]
    return lines


def _indent(lines: list[str], by: int) -> list[str]:
    return ["    " * by + line for line in lines]


def _cpu_source(layout: Layout, program: Program, checked: bool) -> str:
    """The driver takes one array of addresses: dozens of array arguments would cost more than a
    small batch's step."""
    sizes = [name for name in program.arguments if name in layout.sizes]
    lines = [f"    {name} = sizes[{i}]" for i, name in enumerate(sizes)]
    views = [name for name in program.arguments if name in layout.slots]
    stored = sorted(
        {layout.slots[v].packed for v in views}
        | {n for n in program.arguments if n in layout.arrays}
    )
    for name in stored:
        field = layout.arrays[name]
        shape = [] if field.shared else ["num_envs"]
        shape += [
            f"sizes[{sizes.index(s)}]" if s in sizes else str(number(s, layout.sizes))
            for s in field.shape
        ]
        address = list(layout.arrays).index(name)
        lines.append(
            f"    {name} = carray(pointer(addresses[{address}]), ({', '.join(shape)},), "
            f"{field.dtype}_)"
        )
    for name in views:
        slot = layout.slots[name]
        axes = ":, " * len(layout.shape(slot.packed, 1)[:-1])
        entry = str(slot.start) if slot.size is None else f"{slot.start}:{slot.start + slot.size}"
        lines.append(f"    {name} = {slot.packed}[{axes}{entry}]")

    lines.append("    for env in range(first, last):")
    for group in _grouped(program.calls):
        phase, when = group[0].phase, group[0].when
        block: list[str] = []
        indices = [f"i{n}" for n in range(len(phase.lanes))]
        if not indices:
            block = _body(program, group, indices)
        elif checked:
            count = " * ".join(phase.lanes)
            block = [f"for k in range({count}):", f"    lane = lane_at(order, env, k, {count})"]
            for n in reversed(range(len(phase.lanes))):
                block += [
                    f"    i{n} = lane % {phase.lanes[n]}",
                    f"    lane = lane // {phase.lanes[n]}",
                ]
            block += _indent(_body(program, group, indices), 1)
        else:
            for n, lane in enumerate(phase.lanes):
                block.append("    " * n + f"for i{n} in range({lane}):")
            block += _indent(_body(program, group, indices), len(indices))
        if when != "always":
            condition = "if resetting[env]:" if when == "reset" else "if not resetting[env]:"
            block = [condition, *_indent(block, 1)]
        lines += _indent(block, 2)
    return "\n".join(
        [
            f'"""One step of {program.game}, for a range of envs. Generated by '
            'ludus.sim.compile."""',
            "from numba import carray, njit, prange",
            "",
            f"@njit(nogil=True, error_model='numpy', boundscheck={checked})",
            "def run(first, last, order, num_envs, sizes, addresses):",
            *lines,
            "",
            "@njit(nogil=True, error_model='numpy', parallel=True)",
            "def run_parallel(serial, chunks, num_envs, sizes, addresses):",
            "    for chunk in prange(chunks):",
            "        run_at(serial, num_envs * chunk // chunks, num_envs * (chunk + 1) // chunks, "
            "0, num_envs, sizes, addresses)",
            "",
        ]
    )


def _cuda_source(
    program: Program, sizes: Mapping[str, int]
) -> tuple[str, list[tuple[str, tuple[str, ...], int]]]:
    """The source, and for each kernel: its name, its arguments, its lanes per env. Lane counts are
    compiled in."""
    lines = [
        f'"""One step of {program.game} as CUDA kernels. Generated by ludus.sim.compile."""',
        "from numba import cuda",
        "",
    ]
    kernels: list[tuple[str, tuple[str, ...], int]] = []
    for order, group in enumerate(_grouped(program.calls)):
        phase, when = group[0].phase, group[0].when
        names = {name for call in group for name in call.phase.fields}
        names |= {"resetting"} if when != "always" else set()
        names |= {"controller", "alive"} if group[0].controller is not None else set()
        arguments = tuple(sorted(names))
        counts = [sizes[lane] for lane in phase.lanes]
        lanes = int(np.prod(counts)) if counts else 1
        kernel = f"kernel_{order}"
        kernels.append((kernel, arguments, lanes))
        indices = [f"i{n}" for n in range(len(counts))]
        block = ["lane = thread % " + str(lanes)] if len(counts) > 1 else []
        for n in reversed(range(len(counts))):
            if len(counts) == 1:
                block.append(f"i0 = thread % {lanes}")
            else:
                block += [f"i{n} = lane % {counts[n]}", f"lane = lane // {counts[n]}"]
        block += _body(program, group, indices)
        if when != "always":
            condition = "if resetting[env]:" if when == "reset" else "if not resetting[env]:"
            block = [condition, *_indent(block, 1)]
        lines += [
            "@cuda.jit",
            f"def {kernel}(num_envs, {', '.join(arguments)}):",
            "    thread = cuda.grid(1)",
            f"    if thread < num_envs * {lanes}:",
            f"        env = thread // {lanes}",
            *_indent(block, 2),
            "",
        ]
    return "\n".join(lines), kernels


class _Cache(NullCache):
    """A function's part of a kernel file, in place of numba's own cache: that one loads whatever
    its files hold."""

    def __init__(self, function: str, file: KernelFile, on_miss: Callable[[], None]) -> None:
        self.function, self.file, self.on_miss = function, file, on_miss

    def _name(self, signature: Any, codegen: Any) -> str:
        # the processor's abilities too: a home folder can be shared
        return f"{self.function}{signature} {codegen.magic_tuple()}"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()
        data = self.file.functions.get(self._name(sig, target_context.codegen()))
        if data is None:
            self.on_miss()
            return None
        return self._unpack(target_context, data)

    def save_overload(self, sig: Any, data: Any) -> None:
        packed = self._pack(data)
        if packed is None:
            print(
                "ludus: these compiled rules cannot be kept: a constant array of theirs is too "
                "large",
                file=sys.stderr,
            )
            return
        self.file.functions[self._name(sig, data.codegen)] = packed

    def _pack(self, result: Any) -> bytes | None:
        """None: it holds addresses of this process, as of constant arrays of more than a
        megabyte."""
        return None if result.library.has_dynamic_globals else dumps(result._reduce())

    def _unpack(self, target_context: Any, data: bytes) -> Any:
        return CompileResult._rebuild(target_context, *pickle.loads(data))


class _CudaCache(_Cache):
    def _pack(self, result: Any) -> bytes | None:
        from numba.cuda.dispatcher import serialize

        return (
            None
            if getattr(result, "launch_config_sensitive", False)
            else serialize.dumps(result._reduce_states())
        )

    def _unpack(self, target_context: Any, data: bytes) -> Any:
        from numba.cuda.dispatcher import _Kernel

        return _Kernel._rebuild(**pickle.loads(data))


@contextmanager
def _kept(
    program: Program, target: str, module: types.ModuleType, path: Path, functions: list[str]
) -> Iterator[None]:
    """What is compiled in this block is loaded from the cache. What is not there is kept, after
    saying how long it took."""
    dispatchers = {name: getattr(module, name) for name in functions}
    if all(dispatcher.overloads for dispatcher in dispatchers.values()):  # by an earlier batch
        yield
        return
    started: list[float] = []

    def announce() -> None:
        if not started:
            started.append(time.perf_counter())
            why = (
                f"again: {file.path} {file.damage}"
                if file.damage
                else "the first time; kept for later"
            )
            print(
                f"ludus: compiling {program.game} for {target} ({why}) …",
                file=sys.stderr,
                flush=True,
            )

    file = KernelFile(path)
    cache = _CudaCache if target == "cuda" else _Cache
    for name, dispatcher in dispatchers.items():
        dispatcher._cache = cache(name, file, announce)
    try:
        yield
    except BaseException as error:
        forget(module)
        if not isinstance(error, NumbaError | UnsupportedBytecodeError):
            raise
        rules = sorted(
            reachable(list(_function_names(program).values())),
            key=lambda f: (f.__module__, f.__name__),
        )
        raise RuleError(explain(program.game, rules, str(error))) from None
    if started:
        seconds = time.perf_counter() - started[0]
        print(
            f"ludus: compiled {program.game} for {target} in {seconds:.1f} s",
            file=sys.stderr,
            flush=True,
        )
        if file.functions:
            file.write()


# -- CPU -------------------------------------------------------------------------------------------


@intrinsic
def _pointer(context: Any, address: Any) -> Any:
    """An address as a pointer."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return numba.types.voidptr(address), generate


@intrinsic
def _run_at(
    context: Any,
    address: Any,
    first: Any,
    last: Any,
    order: Any,
    num_envs: Any,
    sizes: Any,
    addresses: Any,
) -> Any:
    """Calls a compiled driver by its address: called by its name it would be compiled again, as a
    part of its caller."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds = signature.args[1:]
        function = context.call_conv.get_function_type(numba.types.none, kinds)
        result, failure = (
            cgutils.alloca_once(builder, pointer.pointee, zfill=True)
            for pointer in function.args[:2]
        )
        values = context.get_arg_packer(kinds).as_arguments(builder, args[1:])
        # rules raise nothing
        builder.call(builder.inttoptr(args[0], function.as_pointer()), [result, failure, *values])
        return context.get_dummy_value()

    return numba.types.none(address, first, last, order, num_envs, sizes, addresses), generate


def compile_cpu(
    layout: Layout,
    program: Program,
    arrays: Mapping[str, np.ndarray],
    num_envs: int,
    threads: int,
    checked: bool,
    order: int,
) -> Callable[[], None]:
    """A function that runs one step on these arrays, which must stay where they are."""
    linker = _checked_linker if checked else _linker
    scope: dict[str, Any] = {
        name: linker.link(f, phase=True) for name, f in _function_names(program).items()
    }
    scope |= {"lane_at": linker.link(lane_at), "pointer": _pointer, "run_at": _run_at}
    scope |= {f"{f.dtype}_": np.dtype(f.dtype).type for f in layout.arrays.values()}
    module, path = load_driver(
        program.game,
        list(_function_names(program).values()),
        _cpu_source(layout, program, checked),
        scope,
    )
    sizes = np.array(
        [layout.sizes[name] for name in program.arguments if name in layout.sizes], np.int64
    )
    addresses = np.array([arrays[name].ctypes.data for name in layout.arrays], np.int64)
    integer, integers = numba.types.int64, numba.types.int64[::1]
    target = "cpu-threads" if threads > 1 else "checked-cpu" if checked else "cpu"
    functions = ["run", "run_parallel"] if threads > 1 else ["run"]
    with interruptible(), _kept(program, target, module, path, functions):
        serial = (integer, integer, integer, integer, integers, integers)
        module.run.compile(serial)
        if threads > 1:
            module.run_parallel.compile((integer, integer, integer, integers, integers))
        _check_types(program, linker)
    if threads == 1:
        return lambda: module.run(0, num_envs, order, num_envs, sizes, addresses)

    compiled = module.run.overloads[serial]
    address = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)

    def run() -> None:
        numba.set_num_threads(min(threads, thread_limit()))
        module.run_parallel(address, threads, num_envs, sizes, addresses)

    return run


def _check_types(program: Program, linker: Linker) -> None:
    """Rules compute in float32: mixing in an integer makes numba take double precision. And what is
    stored in a field of whole numbers must be one: numba would cut off the fraction in silence."""
    for function in (linker.link(f) for f in reachable(list(_function_names(program).values()))):
        for result in function.overloads.values():
            found = find_truncation(result)
            if found:
                raise RuleError(
                    f"{program.game}: {found}: its fraction would be lost; declare the field as "
                    "f32, or write int32(…) to cut it off"
                )
            found = find_double(result)
            if found:
                raise RuleError(
                    f"{program.game}: double precision {found}: wrap integers in float32(…) before "
                    "mixing them with floats"
                )


def _statements(result: Any) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    """The statements of a freshly compiled function, each with the types of all variables."""
    annotation = result.type_annotation
    # loaded from the cache: it was looked at when it was compiled
    if not hasattr(annotation, "typemap"):
        return
    for block in (
        annotation.blocks.values()
        if hasattr(annotation, "blocks")
        else annotation.func_ir.blocks.values()
    ):
        for statement in block.body:
            yield statement, annotation.typemap


def find_double(result: Any) -> str | None:
    """Where a freshly compiled function computes in double precision, or None."""
    for statement, types_ in _statements(result):
        target = getattr(getattr(statement, "target", None), "name", "")
        if types_.get(target) == numba.types.float64:
            return f"in {result.fndesc.qualname} ({statement.loc.filename}:{statement.loc.line})"
    return None


def find_truncation(result: Any) -> str | None:
    """Where a freshly compiled function stores a float in an array of whole numbers, or None."""
    for statement, types_ in _statements(result):
        if not isinstance(statement, ir.SetItem | ir.StaticSetItem):
            continue
        array, value = types_[statement.target.name], types_[statement.value.name]
        whole = isinstance(array, numba.types.Array) and isinstance(
            array.dtype, numba.types.Integer | numba.types.Boolean
        )
        if whole and isinstance(value, numba.types.Float):
            field = statement.target.name.partition(".")[0]
            return (
                f"{result.fndesc.qualname} stores a float in '{field}', which is {array.dtype} "
                f"({statement.loc.filename}:{statement.loc.line})"
            )
    return None


def thread_limit() -> int:
    return int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]


# -- CUDA ------------------------------------------------------------------------------------------


def _import_cuda() -> Any:
    if not hasattr(np, "row_stack"):  # numba-cuda 0.30 still asks for the old name
        np.row_stack = np.vstack
    try:
        from numba import cuda
    except ImportError:
        raise LudusError(
            "device cuda needs the package numba-cuda: pip install 'ludus[cuda]'"
        ) from None
    return cuda


def _cuda_driver(program: Program, sizes: Mapping[str, int]) -> tuple[types.ModuleType, Path, list]:
    _import_cuda()
    functions = {name: _linker.link(f, phase=True) for name, f in _function_names(program).items()}
    source, kernels = _cuda_source(program, sizes)
    module, path = load_driver(
        program.game, list(_function_names(program).values()), source, functions
    )
    return module, path, kernels


def compile_cuda(
    program: Program, sizes: Mapping[str, int], values: Mapping[str, Any], num_envs: int
) -> Callable[[], None]:
    """A function that launches one step on torch's current stream; it can be captured in a CUDA
    graph."""
    import torch

    cuda = _import_cuda()
    module, path, kernels = _cuda_driver(program, sizes)
    arrays = {
        n: cuda.as_cuda_array(v) if isinstance(v, torch.Tensor) else v for n, v in values.items()
    }
    prepared = []
    for name, arguments, lanes in kernels:
        block = 128
        grid = -(-num_envs * lanes // block)
        prepared.append((getattr(module, name), grid, block, tuple(arrays[a] for a in arguments)))

    @functools.lru_cache(maxsize=8)
    def external(stream: int) -> Any:
        return cuda.external_stream(stream)

    def run() -> None:
        stream = external(torch.cuda.current_stream().cuda_stream)
        for kernel, grid, block, arguments in prepared:
            kernel[grid, block, stream](num_envs, *arguments)

    with interruptible(), _kept(program, "cuda", module, path, [name for name, _, _ in kernels]):
        for kernel, _, _, arguments in prepared:
            kernel.compile(
                tuple(
                    numba.typeof(num_envs) if i == 0 else cuda_type(a)
                    for i, a in enumerate((num_envs, *arguments))
                )
            )
    return run


def cuda_type(value: Any) -> Any:
    return value._numba_type_ if hasattr(value, "_numba_type_") else numba.typeof(value)


def compile_ptx(
    program: Program, sizes: Mapping[str, int], values: Mapping[str, Any]
) -> dict[str, str]:
    """PTX by kernel, for a chip of compute capability 9.0, on a machine with the compiler but
    without a GPU."""
    cuda = _import_cuda()
    from numba.cuda import dispatcher

    module, _, kernels = _cuda_driver(program, sizes)
    original = dispatcher.get_current_device
    dispatcher.get_current_device = lambda: types.SimpleNamespace(compute_capability=(9, 0))
    try:
        out = {}
        for name, arguments, _ in kernels:
            signature = (numba.types.int64, *(numba.typeof(values[a]) for a in arguments))
            out[name], _ = cuda.compile(
                getattr(module, name).py_func, signature, device=False, abi="numba", cc=(9, 0)
            )
        return out
    finally:
        dispatcher.get_current_device = original
