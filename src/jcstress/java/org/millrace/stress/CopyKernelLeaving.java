package org.millrace.stress;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import org.millrace.abi.kernel.CopyMailbox;
import org.millrace.ffi.mailbox.mailbox_h;
import org.millrace.ffi.mailbox.millraceCopyCommand;
import org.millrace.ffi.mailbox.millraceCopyMailbox;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.ZZ_Result;

/**
 * The kernel that copies announces that it leaves, and then reads the commands once more. The host posts commands
 * meanwhile. If the host assumes that the kernel sees a command, the kernel must execute it.
 */
@JCStressTest
@Outcome(id = "true, true", expect = ACCEPTABLE, desc = "the commands were there before the kernel left")
@Outcome(
        id = "false, true",
        expect = ACCEPTABLE,
        desc = "the kernel looked late: the host waits until it is gone, and finds that the commands were carried out")
@Outcome(id = "false, false", expect = ACCEPTABLE, desc = "the kernel looked before: the host copies otherwise")
@Outcome(id = "true, false", expect = FORBIDDEN, desc = "the host waits for a copy that nobody makes")
@State
public class CopyKernelLeaving {

    private static final VarHandle INT = ValueLayout.JAVA_INT.varHandle();
    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();
    private static final int NUMBER = 1;

    private final MemorySegment memory = Arena.ofAuto().allocate(CopyMailbox.BYTES, CopyMailbox.ALIGNMENT);
    private final CopyMailbox mailbox = CopyMailbox.of(memory);

    /** Sets the state to a running kernel. */
    public CopyKernelLeaving() {
        INT.set(memory, millraceCopyMailbox.state$offset(), mailbox_h.MILLRACE_COPY_PRESENT());
    }

    /** The host. */
    @Actor
    public void host(ZZ_Result result) {
        mailbox.copyRelease(NUMBER, 64, 128, 8, 0, false, true);
        mailbox.copyRelease(NUMBER + 1, 64, 128, 8, 0, false, true);
        result.r1 = mailbox.stateBehindCommand() == CopyMailbox.PRESENT;
    }

    /** The kernel, as it leaves. */
    @Actor
    public void kernel(ZZ_Result result) {
        INT.setOpaque(memory, millraceCopyMailbox.state$offset(), mailbox_h.MILLRACE_COPY_LEAVING());
        VarHandle.fullFence();
        boolean there = true;
        for (int number = NUMBER; number < NUMBER + 2; number++) {
            for (int word = 0; word < mailbox_h.MILLRACE_COPY_WORDS(); word++) {
                long at = number * millraceCopyCommand.sizeof() + (long) word * Long.BYTES;
                there &= (long) LONG.getAcquire(memory, at) >>> mailbox_h.MILLRACE_COPY_NUMBER_SHIFT() == number;
            }
        }
        result.r2 = there;
    }
}
