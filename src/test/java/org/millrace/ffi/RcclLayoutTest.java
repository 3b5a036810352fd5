package org.millrace.ffi;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.KernelLayout;
import org.millrace.abi.LL128Line;
import org.millrace.abi.RecvMem;
import org.millrace.abi.SendMem;

/** Java's layouts of RCCL's memory equal the structs of layouts.txt, which {@link AbiProofTest} compares with C. */
class RcclLayoutTest {
    private static final int LAST = ConnectionLayout.SLOTS - 1;

    @Test
    void recvMemIsTheRecordedStruct() throws Exception {
        MemorySegment memory = Arena.ofAuto().allocate(bytes("rcclRecvMem"), RecvMem.ALIGNMENT);
        RecvMem recvMem = RecvMem.of(memory, KernelLayout.RCCL);
        recvMem.tailRelease(1);
        assertEquals(1, memory.get(ValueLayout.JAVA_LONG, offset("rcclRecvMem", "tail")));
        for (int slot : new int[] {0, LAST}) {
            recvMem.modePlain(slot, 2);
            recvMem.offsetPlain(slot, 3);
            recvMem.sizePlain(slot, 4);
            recvMem.ptrPlain(slot, 5);
            assertEquals(2, memory.get(ValueLayout.JAVA_INT, entry(slot, "mode")));
            assertEquals(3, memory.get(ValueLayout.JAVA_INT, entry(slot, "offset")));
            assertEquals(4, memory.get(ValueLayout.JAVA_LONG, entry(slot, "size")));
            assertEquals(5, memory.get(ValueLayout.JAVA_LONG, entry(slot, "ptr")));
        }
    }

    @Test
    void sendMemHasTheSizeAndTheHeadOfTheRecordedStruct() throws Exception {
        assertEquals(bytes("rcclSendMem"), SendMem.BYTES);
        assertEquals(offset("rcclSendMem", "head"), SendMem.HEAD_OFFSET);
    }

    @Test
    void theLineIsTheRecordedStruct() throws Exception {
        LL128Line line = KernelLayout.RCCL.ll128Line();
        assertEquals(bytes("rcclLL128Line"), line.bytes());
        assertEquals(offset("rcclLL128Line", "flag"), line.dataBytes());
    }

    private static long entry(int slot, String field) throws Exception {
        return offset("rcclRecvMem", "connFifo[" + slot + "]." + field);
    }

    private static long bytes(String struct) throws Exception {
        return Layout.recorded().get(struct).bytes();
    }

    private static long offset(String struct, String path) throws Exception {
        return Layout.recorded()
                .get(struct)
                .fields()
                .stream()
                .filter(field -> field.path().equals(path))
                .findFirst()
                .orElseThrow()
                .offset();
    }
}
