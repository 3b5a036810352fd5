package org.millrace.cli.gin;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.millrace.MillraceException;

class KernelCompilerTest {

    @Test
    void anNcclWithoutGinIsRefusedWithWhatToDo() {
        Path library = Path.of("/usr/lib/libnccl.so.2");
        String message =
                assertThrows(MillraceException.class, () -> KernelCompiler.requireGin(22803, "2.28.3", library))
                        .getMessage();
        assertTrue(message.contains("NCCL 2.28.3 (/usr/lib/libnccl.so.2) has no GIN")
                && message.contains("MILLRACE_NCCL_LIBRARY"), message);
        assertDoesNotThrow(() -> KernelCompiler.requireGin(22807, "2.28.7", library));
    }
}
