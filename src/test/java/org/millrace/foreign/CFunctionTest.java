package org.millrace.foreign;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;

class CFunctionTest {

    private static final int EBADF = 9;

    @Test
    void aFunctionReadsTheArgumentsThatItDeclares() {
        try (Arena arena = Arena.ofConfined()) {
            assertEquals(5, CFunction.named("strlen").call(arena.allocateFrom("seven").address()));
        }
    }

    @Test
    void anIntIsInTheLowerHalf() {
        assertEquals(7, (int) CFunction.named("abs").call(-7));
        assertEquals(7, (int) CFunction.named("abs").call(0xFFFF_FFF9L));
        assertEquals(-1, (int) CFunction.named("atoi").call(text("-1")));
    }

    @Test
    void aFunctionMayTakeAVaryingNumberOfArguments() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment out = arena.allocate(64);
            int length = (int) CFunction.named("snprintf")
                    .call(out.address(), 64, text("%d %ld %s"), -1, Long.MIN_VALUE, text("end"));
            assertEquals("-1 -9223372036854775808 end", out.getString(0));
            assertEquals(out.getString(0).length(), length);
        }
    }

    @Test
    void anErrorNumberIsANegativeResult() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment errno = CFunction.newErrno(arena);
            assertEquals(-EBADF, CFunction.named("lseek").callForErrno(errno, -1, 0, 0, 0, 0, 0));
            assertEquals(ProcessHandle.current().pid(),
                    (int) CFunction.named("getpid").callForErrno(errno, 0, 0, 0, 0, 0, 0));
        }
    }

    @Test
    void aMissingFunctionIsNamed() {
        assertTrue(CFunction.find("no_such_function").isEmpty());
        Error missing = assertThrows(UnsatisfiedLinkError.class, () -> CFunction.named("no_such_function"));
        assertEquals("the C library has no no_such_function", missing.getMessage());
    }

    private static long text(String text) {
        return Arena.global().allocateFrom(text).address();
    }
}
