"""Commands for gdb that know fibers, channels and nurseries of libccc.

    source ccc-gdb.py            (or let gdb load it by itself: see HACKING.md)

    cc fibers [WORD]             a line for each fiber; with a word, those whose line contains it
    cc fiber N bt                the backtrace of fiber N, whatever it does; N is a slot or a name
    cc fiber N COMMAND           any command of gdb, as if the current thread were that fiber
    cc chan EXPRESSION           a channel: how full it is, and who waits
    cc nurseries                 the tree of scopes that fibers are in
    cc gcore [FILE]              a core file, as gcore makes, with the stacks of all fibers

Works on living processes and on core files, needs the library's debug information, and changes nothing: a resting
fiber is shown by telling gdb's unwinder where its frames are, not by writing to registers.
"""

import contextlib
import re
import struct
import time

import gdb
import gdb.unwinder


class Trouble(Exception):
    """A sentence for the user."""


def words_of(error):
    return str(error).rstrip(".")


# ---- reading the library's data ----

# As in src/fiber/state.h; macros are not in the debug information.
STATES = ["IDLE", "RUNNABLE", "RUNNING", "PARKING", "PARKED", "DONE"]
IDLE, RUNNABLE, RUNNING, PARKING, PARKED, DONE = range(6)
FRESH = 16
REASON_SHIFT, REASON_MASK = 5, 31
OWNER_SHIFT, OWNER_MASK = 10, 1023
CANCEL_BITS = 63  # src/wait/cancel.h
NEVER = 2**64 - 1

SHOWN = 1000  # lines of one command; more would be no help


def evaluate(expression):
    try:
        return gdb.parse_and_eval(expression)
    except gdb.error as error:
        raise Trouble("'%s' cannot be evaluated: %s." % (expression, words_of(error)))


# Where a type is to be looked up: a function in a file that knows it.
WITNESSES = {
    "struct fiber": "cc__pool_at",
    "struct fiber_cold": "cc__scope_enter",
    "struct fiber_block": "cc_spawn",
    "struct CCNursery": "cc_nursery_wait",
    "struct CCChan": "cc_chan_close",
    "struct arm": "cc_chan_close",
    "struct arms": "cc_select",
    "struct io_fd": "cc_fd_close",
}


def find_type(name):
    if name == "struct scope":  # others have one of that name
        return find_type("struct CCNursery").fields()[0].type
    witness = WITNESSES.get(name)
    symbol = gdb.lookup_global_symbol(witness) if witness else None
    try:
        if symbol is not None:
            return gdb.lookup_type(name, symbol.symtab.static_block())
        return gdb.lookup_type(name)
    except gdb.error:
        raise Trouble("The type '%s' is not known: libccc is not loaded here, or has no debug information." % name)


def constant(name, otherwise):
    try:
        return int(gdb.parse_and_eval(name))
    except gdb.error:
        return otherwise


def enum_name(type_name, prefix, number):
    try:
        for field in gdb.lookup_type(type_name).fields():
            if field.enumval == number:
                return field.name[len(prefix):].lower()
    except gdb.error:
        pass
    return str(number)


def string(value):
    try:
        return value.string(errors="replace")
    except gdb.error:
        return ""


def offset_of(type_name, field):
    for candidate in find_type(type_name).fields():
        if candidate.name == field:
            return candidate.bitpos // 8
    raise Trouble("%s has no field '%s': these commands and this libccc do not belong together." % (type_name, field))


def has_field(value, name):
    return any(field.name == name for field in value.type.strip_typedefs().fields())


def is_whole(head):
    """Whether the first member of a list knows that it is the first; one that is just being changed may not."""
    try:
        return int(head["next"]["prev"]) == int(head.address)
    except gdb.MemoryError:
        return False


def walk_list(head, type_name, member, most=100000):
    """The records of a circular list that hold `member`; stops at what cannot be right."""
    start = int(head.address)
    back = offset_of(type_name, member)
    pointer = find_type(type_name).pointer()
    at = int(head["next"])
    for _ in range(most):
        if at == start or at == 0:
            return
        record = gdb.Value(at - back).cast(pointer)
        yield record
        at = int(record[member]["next"])


def symbol_of(address):
    """The name of a function, or its address."""
    if address == 0:
        return "0"
    block = gdb.block_for_pc(address)
    while block is not None:
        if block.function is not None:
            return block.function.print_name
        block = block.superblock
    text = gdb.execute("info symbol %d" % address, to_string=True)
    return text.split(" ")[0] if " in section" in text else "%#x" % address


def place_of(address):
    sal = gdb.find_pc_line(address)
    if sal.symtab is None:
        return symbol_of(address)
    return "%s (%s:%d)" % (symbol_of(address), sal.symtab.filename.split("/")[-1], sal.line)


# ---- fibers ----

class Fiber:
    def __init__(self, record, word):
        self.record = record  # a pointer
        self.word = word
        self.state = word & 7
        self.reason = (word >> REASON_SHIFT) & REASON_MASK
        self.owner = (word >> OWNER_SHIFT) & OWNER_MASK

    @property
    def slot(self):
        return int(self.record["slot"])

    @property
    def id(self):
        return "%d.%d" % (self.slot, int(self.record["generation"]))

    @property
    def stack(self):
        return self.record["stack"]

    @property
    def fresh(self):
        """It has not begun, so it has no frames."""
        return (self.state == RUNNABLE and self.word & FRESH != 0) or int(self.stack) == 0

    @property
    def name(self):
        try:
            if int(self.stack) != 0:
                return string(self.stack["cold"].dereference()["name"])
            if self.state == RUNNABLE and self.reason == constant("ARGS_BLOCK", 2):
                block = find_type("struct fiber_block").pointer().pointer()
                return string(self.record["args"].address.cast(block).dereference()["name"])
        except gdb.error:
            pass
        return ""

    @property
    def label(self):
        return "fiber %s%s" % (self.id, " '%s'" % self.name if self.name else "")

    def park_reason(self):
        name = enum_name("enum park_reason", "PARK_", self.reason)
        return {"queue": "channel", "cond": "condition", "sem": "semaphore", "group": "wait group"}.get(name, name)

    def state_text(self):
        text = STATES[self.state] if self.state < len(STATES) else "?"
        if self.state == RUNNABLE and self.word & FRESH:
            return text + " fresh"
        if self.state in (PARKING, PARKED):
            return text + " " + self.park_reason()
        return text

    def object_text(self):
        """What it waits for, as the fiber has noted it."""
        if self.state != PARKED or not has_field(self.record.dereference(), "site"):
            return ""
        object = int(self.record["link"]["next"])
        kind = self.park_reason()
        if object == 0 or kind == "sleep":
            return ""
        try:
            return describe_object(kind, object)
        except gdb.error:
            return "%#x" % object

    def worker_text(self):
        if self.owner == 0:
            return "-"
        return ("on" if self.state == RUNNING else "last on") + " worker %d" % (self.owner - 1)


def describe_object(kind, object):
    if kind == "channel":
        channel = gdb.Value(object).cast(find_type("struct CCChan").pointer())
        name = string(channel["name"])
        return "channel %s%#x" % ("'%s' at " % name if name else "", object)
    if kind in ("join", "run"):
        record = gdb.Value(object).cast(find_type("struct fiber").pointer())
        return Fiber(record, int(record["word"])).label
    if kind == "nursery":
        scope = gdb.Value(object).cast(find_type("struct scope").pointer())
        return scope_label(scope)
    if kind == "fd":
        fd = gdb.Value(object).cast(find_type("struct io_fd").pointer())
        return "fd %d" % int(fd["number"])
    if kind in ("select", "io"):
        all = gdb.Value(object).cast(find_type("struct arms").pointer())
        parts = []
        if int(all["count"]) == 0 and kind == "select":
            ends = [text for field, text in (("timed", "a point in time"), ("cancel", "a cancellation"))
                    if int(all[field]) != 0]
            return (" or ".join(ends) or "nothing") + ": no %scase can be ready" % ("other " if ends else "")
        for i in range(min(int(all["count"]), 4)):
            arm = all["first"][i]
            if kind == "io":
                parts.append(describe_object("fd", int(arm["object"])))
                continue
            case = enum_name("CCCaseKind", "CC_CASE_", int(arm["kind"]))
            of = {"send": "channel", "recv": "channel", "join": "join", "readable": "fd", "writable": "fd",
                  "acquire": "semaphore", "nursery_end": "nursery"}.get(case, case)
            parts.append(case + " " + describe_object(of, int(arm["object"])))
        more = int(all["count"]) - len(parts)
        return ", ".join(parts) + (", %d more" % more if more > 0 else "")
    return "%s at %#x" % (kind, object)


def all_fibers():
    """Every fiber that is in use. Reads whole slabs: there may be a million records."""
    try:
        map = gdb.parse_and_eval("cc__pool_map")
    except gdb.error:
        raise Trouble("No fibers are known: libccc is not loaded here, or has no debug information.")
    size, per_slab, slabs = int(map["size"].dereference()), int(map["records"]), map["slabs"]
    fiber = find_type("struct fiber")
    word_at = offset_of("struct fiber", "word")
    inferior = gdb.selected_inferior()
    for first in range(0, size, per_slab):
        slab = int(slabs[first // per_slab])
        if slab == 0:
            return
        count = min(per_slab, size - first)
        try:
            memory = inferior.read_memory(slab, count * fiber.sizeof)
        except gdb.error:
            raise Trouble("The fiber records at %#x cannot be read; a core file may lack them." % slab)
        for i in range(count):
            word = struct.unpack_from("=Q", memory, i * fiber.sizeof + word_at)[0]
            if word & 7 not in (IDLE, DONE):
                yield Fiber(gdb.Value(slab + i * fiber.sizeof).cast(fiber.pointer()), word)


def find_fiber(text):
    slot = text.split(".")[0]
    for fiber in all_fibers():
        if (slot.isdigit() and fiber.slot == int(slot) and text in (slot, fiber.id)) or fiber.name == text:
            return fiber
    raise Trouble("There is no fiber '%s'; 'cc fibers' lists them." % text)


@contextlib.contextmanager
def selection_kept():
    """Whatever happens inside: afterwards the same thread and frame are selected."""
    thread, level = gdb.selected_thread(), gdb.selected_frame().level()
    try:
        yield
    finally:
        thread.switch()
        frame = gdb.newest_frame()
        while frame.level() < level and frame.older() is not None:
            frame = frame.older()
        frame.select()


def thread_on_stack(stack):
    """The thread that is on the stack of a fiber right now; None: not one."""
    low = int(stack["base"])
    high = low + (1 << int(stack["log2"]))
    with selection_kept():
        for thread in gdb.selected_inferior().threads():
            thread.switch()
            if low <= int(gdb.newest_frame().read_register("sp")) < high:
                return thread
    return None


# ---- a fiber's frames ----

class FrameId:
    def __init__(self, sp, pc):
        self.sp = sp
        self.pc = pc


class FiberUnwinder(gdb.unwinder.Unwinder):
    """Makes a fiber's frames follow upon the newest frame of the current thread."""

    FRAME_POINTER = {"i386:x86-64": "rbp", "aarch64": "x29", "riscv:rv64": "fp"}

    def __init__(self):
        super().__init__("ccc fiber")
        self.context = None
        self.seen = None

    def __call__(self, pending):
        if self.context is None:
            return None
        sp = pending.read_register("sp")
        here = (int(sp), int(pending.read_register("pc")))
        if self.seen is None:
            self.seen = here  # the first frame that is unwound is the newest one
        if here != self.seen:
            return None
        # The lowest possible frame: whatever comes next is above it, as the unwinder wants it.
        info = pending.create_unwind_info(FrameId(gdb.Value(16).cast(sp.type), pending.read_register("pc")))
        pointer = pending.read_register("pc").type
        info.add_saved_register("pc", gdb.Value(self.context["pc"]).cast(pointer))
        info.add_saved_register("sp", gdb.Value(self.context["sp"]).cast(sp.type))
        name = self.FRAME_POINTER[pending.architecture().name()]
        register = pending.read_register(name)
        info.add_saved_register(name, gdb.Value(self.context["fp"]).cast(register.type))
        return info

    def enter(self, context):
        self.context, self.seen = context, None
        gdb.invalidate_cached_frames()

    def leave(self):
        self.context = None
        gdb.invalidate_cached_frames()


unwinder = FiberUnwinder()
gdb.unwinder.register_unwinder(None, unwinder, replace=True)


def context_of(fiber):
    saved = fiber.record["context"]
    if not has_field(saved, "sp"):
        raise Trouble("This libccc was built with the portable context switch (CC_UCONTEXT), whose frames are not known.")
    architecture = gdb.newest_frame().architecture().name()
    if architecture not in FiberUnwinder.FRAME_POINTER:
        raise Trouble("Frames of fibers on %s are not known." % architecture)
    return {name: int(saved[name]) for name in ("sp", "pc", "fp")}


def rests(fiber):
    """None if its frames are in its record, else a sentence that says why not."""
    if fiber.fresh:
        return "%s has not begun: it will run %s." % (fiber.label, symbol_of(int(fiber.record["fn"])))
    if fiber.state in (PARKED, RUNNABLE):
        return None
    return ""


def run_in_fiber(fiber, command):
    """What the command says, with the fiber's frames above frame 0, which is the thread's own."""
    sentence = rests(fiber)
    if sentence:
        raise Trouble(sentence)
    if sentence is None:
        with selection_kept():
            unwinder.enter(context_of(fiber))
            try:
                return run_in_frames(fiber, command)
            finally:
                unwinder.leave()
    thread = thread_on_stack(fiber.stack)
    if thread is None:
        raise Trouble("%s runs on worker %d, but no thread is on its stack." % (fiber.label, fiber.owner - 1))
    with selection_kept():
        thread.switch()
        return "It runs on thread %d (%s).\n" % (thread.num, thread.name or "no name") + gdb.execute(command, to_string=True)


def run_in_frames(fiber, command):
    newest = gdb.newest_frame()
    hidden = 1
    while newest.type() == gdb.INLINE_FRAME:
        newest = newest.older()
        hidden += 1
    if newest.older() is None:
        raise Trouble("The frames of %s cannot be found: its stack is not in this core file, or is damaged." % fiber.label)
    newest.older().select()
    # As many frames as were asked for, and those that are hidden.
    command = re.sub(r"^(bt|backtrace|where) +(\d+)$", lambda m: "bt %d" % (int(m.group(2)) + hidden), command)
    return hide_frames(gdb.execute(command, to_string=True), hidden)


def hide_frames(text, count):
    """A backtrace without the thread's own frames."""
    if not text.startswith("#0 "):
        return text
    kept, shown = [], False
    for line in text.splitlines():
        match = re.match(r"#(\d+) ", line)
        if match:
            shown = int(match.group(1)) >= count
        if shown:
            kept.append(line)
    return "\n".join(kept) + "\n"


# ---- scopes ----

def scope_label(scope):
    kind, name = "scope", ""
    if bool(scope["nursery"]):
        kind = "nursery"
        name = string(scope.cast(find_type("struct CCNursery").pointer())["name"])
    return "%s %s%#x" % (kind, "'%s' at " % name if name else "", int(scope))


def deadline_text(deadline):
    if deadline == NEVER:
        return ""
    if gdb.selected_thread() is not None and gdb.selected_thread().ptid[0] > 0 and not is_core():
        return ", deadline in %.3f s" % ((deadline - time.clock_gettime_ns(time.CLOCK_MONOTONIC)) / 1e9)
    return ", deadline at %.3f s of the monotonic clock" % (deadline / 1e9)


def is_core():
    connection = getattr(gdb.selected_inferior(), "connection", None)
    return connection is not None and connection.type == "core"


def roots_of_scopes():
    """Scopes are found by the fibers that are in them; {address: scope}."""
    pointer = find_type("struct scope").pointer()
    roots = {}
    for fiber in all_fibers():
        at = int(fiber.record["scope"]) & ~CANCEL_BITS
        if at == 0:
            continue
        scope = gdb.Value(at).cast(pointer)
        while int(scope["parent"]) != 0:
            scope = scope["parent"]
        roots[int(scope)] = scope
    return [roots[at] for at in sorted(roots)]


def print_scope(scope, depth, seen):
    if int(scope) in seen or len(seen) >= SHOWN:
        return
    seen.add(int(scope))
    text = scope_label(scope)
    if bool(scope["nursery"]):
        count = int(scope["children"])
        text += ", %d %s" % (count, "child" if count == 1 else "children")
    if int(scope["cancelled"]):
        reason = scope["reason"]
        text += ", cancelled"
        if int(reason["code"]) != 0:
            text += " with error %d" % int(reason["code"])
        if string(reason["text"]):
            text += " (%s)" % string(reason["text"])
    text += deadline_text(int(scope["deadline"]))
    print("  " * depth + text)
    try:
        members = [cold["fiber"] for cold in walk_list(scope["members"], "struct fiber_cold", "member", SHOWN)]
    except gdb.MemoryError:
        members = []
    if not members and int(scope["members"]["next"]) != int(scope["members"].address):
        print("  " * (depth + 1) + "its fibers are not known: their stacks are not in this core file ('cc gcore' saves them)")
    members = [record for record in members if int(record) != 0]
    for record in members:
        fiber = Fiber(record, int(record["word"]))
        print("  " * (depth + 1) + "%s, %s" % (fiber.label, fiber.state_text()))
    for inner in walk_list(scope["inner"], "struct scope", "beside", SHOWN):
        print_scope(inner, depth + 1, seen)


# ---- core files ----

PAGE = 4096
PIECE = 1 << 20  # as gcore reads


def core_segments(file):
    """What a core file holds: (address, size, where in the file)."""
    head = file.read(64)
    if head[:6] != b"\x7fELF\x02\x01":
        raise Trouble("The core file is not a 64-bit one.")
    offset, = struct.unpack_from("<Q", head, 0x20)
    size, count = struct.unpack_from("<HH", head, 0x36)
    if count == 0xffff:  # more than fit there; the first section says how many
        sections, = struct.unpack_from("<Q", head, 0x28)
        file.seek(sections + 0x2c)
        count, = struct.unpack("<I", file.read(4))
    for i in range(count):
        file.seek(offset + i * size)
        kind, _, at, address, _, stored = struct.unpack("<IIQQQQ", file.read(40))
        if kind == 1 and stored:
            yield address, stored, at


def missing_parts(inferior, address, size):
    """What gcore leaves out of a region: it gives up at the first piece in which a page cannot be read."""
    given_up = False
    for piece in range(address, address + size, PIECE):
        length = min(PIECE, address + size - piece)
        try:
            memory = inferior.read_memory(piece, length)
            if given_up:
                yield piece, memory
            continue
        except gdb.MemoryError:
            given_up = True
        for page in range(piece, piece + length, PAGE):
            try:
                yield page, inferior.read_memory(page, min(PAGE, piece + length - page))
            except gdb.MemoryError:
                pass  # the guard of a stack


def complete_core(path):
    """Writes what gcore has left out into its file; returns how many bytes."""
    inferior = gdb.selected_inferior()
    added = 0
    with open(path, "r+b") as file:
        for address, size, at in list(core_segments(file)):
            for part, memory in missing_parts(inferior, address, size):
                file.seek(at + part - address)
                file.write(memory)
                added += len(memory)
    return added


# ---- the commands ----

class Command(gdb.Command):
    """A command whose troubles are sentences."""

    needs_program = True

    def __init__(self, name, completion=gdb.COMPLETE_NONE, prefix=False):
        super().__init__(name, gdb.COMMAND_STACK, completion, prefix)

    def invoke(self, argument, from_tty):
        try:
            if gdb.selected_thread() is None and self.needs_program:
                raise Trouble("There is nothing to look at: no program runs, and there is no core file.")
            self.run(argument.strip())
        except Trouble as trouble:
            raise gdb.GdbError(str(trouble))
        except gdb.MemoryError as error:
            raise gdb.GdbError("Some memory cannot be read (%s); a core file may lack it, or it is damaged." % words_of(error))
        except gdb.error as error:
            raise gdb.GdbError("gdb says: %s." % words_of(error))
        except (KeyError, ValueError, OverflowError) as error:
            raise gdb.GdbError("These commands and this libccc do not belong together (%s)." % error)


class Cc(Command):
    """Fibers, channels and nurseries of libccc: cc fibers, cc fiber, cc chan, cc nurseries, cc events."""

    needs_program = False

    def __init__(self):
        super().__init__("cc", prefix=True)

    def run(self, argument):
        raise Trouble("Say one of: cc fibers, cc fiber N bt, cc chan EXPRESSION, cc nurseries.")


class CcFibers(Command):
    """cc fibers [WORD]: a line for each fiber; with a word, those whose line contains it.

Id, name, state and reason of the wait, what it waits for, its worker, its function and where it was started."""

    def __init__(self):
        super().__init__("cc fibers")

    def run(self, argument):
        count = shown = 0
        for fiber in all_fibers():
            count += 1
            if shown == SHOWN and not argument:
                continue
            line = "%-14s %-20s %-16s" % (fiber.id, "'%s'" % fiber.name if fiber.name else "-", fiber.state_text())
            object = fiber.object_text()
            if object:
                line += " for " + object + ","
            line += " %s, %s" % (fiber.worker_text(), symbol_of(int(fiber.record["fn"])))
            if has_field(fiber.record.dereference(), "site") and int(fiber.record["site"]) != 0:
                line += ", started by " + place_of(int(fiber.record["site"]) - 1)
            if argument and argument not in line:
                continue
            shown += 1
            if shown <= SHOWN:
                print(line)
        if count == 0:
            print("There are no fibers.")
        elif shown < count or argument:
            print("%d of %d fibers." % (min(shown, SHOWN), count))


class CcFiber(Command):
    """cc fiber N bt: the backtrace of fiber N. N is its slot, its id or its name (in quotes if it has blanks).
cc fiber N COMMAND: any command of gdb, as if the current thread were that fiber, as in
'cc fiber 7 frame apply level 9 info locals'. Frame 0 is the thread's own. Of the fiber's newest function only what is
in memory is right: the switch keeps no other registers."""

    def __init__(self):
        super().__init__("cc fiber")

    def run(self, argument):
        words = gdb.string_to_argv(argument)
        if not words:
            raise Trouble("Say which fiber: cc fiber N bt.")
        fiber = find_fiber(words[0])
        rest = argument
        for quote in ("'%s'" % words[0], '"%s"' % words[0], words[0]):
            if argument.startswith(quote):
                rest = argument[len(quote):].strip()
                break
        text = run_in_fiber(fiber, rest or "bt")
        object = fiber.object_text()
        print("%s, %s%s" % (fiber.label, fiber.state_text(), " for " + object if object else ""))
        print(text, end="")


class CcChan(Command):
    """cc chan EXPRESSION: a channel, how full it is, and who waits. The expression is a CCChan * in the current frame."""

    def __init__(self):
        super().__init__("cc chan", gdb.COMPLETE_EXPRESSION)

    def waiters(self, channel, list_name):
        lines = []
        for arm in walk_list(channel[list_name], "struct arm", "link", SHOWN):
            waiter = arm["waiter"]
            record = waiter["fiber"]
            if int(record) == 0:
                lines.append("    an OS thread")
            else:
                fiber = Fiber(record, int(record["word"]))
                chosen = ", in a select" if int(arm["chosen"]) != 0 else ""
                lines.append("    %s, %s%s" % (fiber.label, symbol_of(int(record["fn"])), chosen))
        return lines

    def run(self, argument):
        if not argument:
            raise Trouble("Say which channel: cc chan EXPRESSION.")
        type = find_type("struct CCChan")
        value = evaluate(argument)
        if value.type.strip_typedefs().code == gdb.TYPE_CODE_STRUCT and value.address is not None:
            value = value.address
        if int(value) == 0:
            raise Trouble("'%s' is NULL." % argument)
        channel = value.cast(type.pointer()).dereference()
        name = string(channel["name"])
        capacity, count = int(channel["capacity"]), int(channel["count"])
        if count > capacity or not (is_whole(channel["receivers"]) or is_whole(channel["senders"])):
            raise Trouble("There is no channel at %#x." % int(value))
        text = "channel %s%#x: " % ("'%s' at " % name if name else "", int(value))
        text += "%d of %d buffered" % (count, capacity) if capacity else "no buffer"
        text += ", elements of %d bytes" % int(channel["size"])
        if int(channel["closed"]):
            text += ", closed (error %d)" % int(channel["error"])
        if int(channel["dropped"]):
            text += ", %d dropped" % int(channel["dropped"])
        print(text + ", %d references" % int(channel["refs"]))
        nobody = True
        for list_name in ("receivers", "senders"):
            lines = self.waiters(channel, list_name)
            if lines:
                nobody = False
                print("  %d %s wait:" % (len(lines), list_name))
                print("\n".join(lines))
        if nobody:
            print("  nobody waits")


class CcNurseries(Command):
    """cc nurseries: the tree of nurseries and deadline blocks that fibers are in, with children, cancellation, deadline.

A nursery in which no fiber is, and below which none is, is not found."""

    def __init__(self):
        super().__init__("cc nurseries")

    def run(self, argument):
        roots = roots_of_scopes()
        seen = set()
        for scope in roots:
            print_scope(scope, 0, seen)
        if not roots:
            print("No fiber is in a nursery.")


class CcEvents(Command):
    """cc events [WORKER] [COUNT]: the last events that the recorder has of a worker, or of all workers; 24, or so many.

Also in a core file. The recorder is on if the program says so, or CC_RECORD or CC_RECORD_LEVEL is set."""

    def __init__(self):
        super().__init__("cc events")

    def run(self, argument):
        words = [int(word, 0) for word in argument.split()]
        recorder = evaluate("cc__recorder")
        if int(recorder["recorded"]) == 0:
            raise Trouble("Nothing was recorded: set CC_RECORD_LEVEL, or call cc_record_start.")
        first, last = recorder["ring"].type.range()
        shown = 0
        for index in range(first, last + 1):
            ring = recorder["ring"][index]
            if int(ring) == 0 or (words and words[0] != index):
                continue
            records = self.newest(ring.dereference(), words[1] if len(words) > 1 else 24)
            if records:
                shown += 1
                print("worker %d%s:" % (index, self.island(ring)) if index != last else "other threads:")
                for line in self.lines(records):
                    print("  " + line)
        if shown == 0:
            print("There are no events.")

    def island(self, ring):
        if not has_field(ring.dereference(), "island"):
            return ""
        name = b"".join(int(ring["island"][i]).to_bytes(8, "little") for i in range(2)).rstrip(b"\0")
        return " (island '%s')" % name.decode("utf-8", "replace") if name else ""

    def newest(self, ring, count):
        end, size = int(ring["next"]), int(ring["size"])
        begin = max(int(ring["begin"]), end - size + 1, end - count)
        return [(int(ring["at"][i % size]["head"]), int(ring["at"][i % size]["body"])) for i in range(begin, end)]

    def lines(self, records):
        line = None
        for head, body in records:
            kind = enum_name("enum record_kind", "REC_", head & 63).upper()
            argument = head >> 6 & 1023
            if kind == "TEXT":
                text = ((head >> 16).to_bytes(6, "little") + body.to_bytes(8, "little"))[:argument]
                line = (line or "") + text.decode("utf-8", "replace")
                continue
            if kind in ("SPAWN_AT", "SPAWN_IN"):
                if kind == "SPAWN_AT" and line is not None:
                    line += symbol_of(body) + " "
                continue
            if line is not None:
                yield line
            line = self.text(kind, argument, body)
        if line is not None:
            yield line

    def text(self, kind, argument, body):
        slot = body & 0xffffffff
        if kind == "RUN":
            before = enum_name("enum record_kind", "REC_", argument).lower()
            return ("it %ss; " % before if before in ("yield", "end") else "") + "fiber %d runs" % slot
        if kind == "PARK":
            reason = enum_name("enum park_reason", "PARK_", argument)
            return "it parks: %s 0x%x" % (reason, body & (1 << 48) - 1)
        if kind == "SWITCH":
            reason = enum_name("enum park_reason", "PARK_", argument)
            return "it parks: %s 0x%x; fiber %d runs" % (reason, body >> 16, body & 0xffff)
        if kind == "WAKE":
            return "wakes fiber %d, %s" % (slot, enum_name("enum wake_reason", "WAKE_", argument))
        if kind == "SPAWN":
            return "spawns fiber %d.%d " % (slot, body >> 32)
        if kind in ("YIELD", "END"):
            return "it %ss" % kind.lower()
        if kind == "NOTE":
            return "notes: "
        if kind == "EVENT":
            return ""
        return "%s 0x%x" % (kind.lower().replace("_", " "), body)


class CcGcore(Command):
    """cc gcore [FILE]: a core file, as gcore makes, with the stacks of all fibers.

gcore gives up a region of memory at the first page that cannot be read, and below each stack there is such a page. So a
core file of gcore lacks the stacks, and with them names of fibers, who is in which nursery, and backtraces. This one has
them. The default for FILE is core.PID."""

    def __init__(self):
        super().__init__("cc gcore", gdb.COMPLETE_FILENAME)

    def run(self, argument):
        if is_core():
            raise Trouble("This is a core file already.")
        path = argument or "core.%d" % gdb.selected_inferior().pid
        gdb.execute("generate-core-file " + path, to_string=True)
        try:
            added = complete_core(path)
        except OSError as error:
            raise Trouble("The core file cannot be completed: %s." % error)
        print("Saved core file %s; %d kB were added to what gcore saves." % (path, added // 1024))


Cc()
CcFibers()
CcFiber()
CcChan()
CcNurseries()
CcEvents()
CcGcore()
