package org.millrace.nccl;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.millrace.DataType;
import org.millrace.MillraceException;
import org.millrace.ReduceOp;
import org.millrace.cuda.CudaStream;
import org.millrace.cuda.DeviceSegments;
import org.millrace.cuda.OwnClassLoader;

/** An NCCL that is older than most of the bound functions. */
@ExtendWith(OwnClassLoader.class)
class OldNcclTest {

    @Test
    void missingFunctionsFailOnlyWhenTheyAreCalled() {
        Stubs stubs = Stubs.load("-DSTUB_OLD");
        assertEquals("2.7.8", stubs.nccl.versionText());
        NcclCommunicator c = stubs.communicator();
        CudaStream stream = stubs.stream();
        var buffer = DeviceSegments.of(0x700000000000L, 64);
        c.allReduce(buffer, buffer, 1, DataType.FLOAT32, ReduceOp.SUM, stream);
        c.send(buffer, 1, DataType.FLOAT32, 0, stream);
        String message = assertThrows(MillraceException.class, () -> c.split(0, 0, null)).getMessage();
        assertTrue(message.startsWith("ncclCommSplit is not in the loaded NCCL 2.7.8 (" + stubs.ncclStub.path()
                + "): NCCL 2.18 and later have it."), message);
        assertThrows(MillraceException.class, () -> c.allToAll(buffer, buffer, 1, DataType.FLOAT32, stream));
        assertThrows(MillraceException.class, () -> c.gather(buffer, buffer, 1, DataType.FLOAT32, 0, stream));
        assertThrows(MillraceException.class, () -> c.scatter(buffer, buffer, 1, DataType.FLOAT32, 0, stream));
        assertThrows(MillraceException.class, () -> c.shrink(new int[] {0}, false, null));
        assertThrows(MillraceException.class, c::revoke);
        assertThrows(MillraceException.class, c::newUniqueId);
        assertThrows(MillraceException.class, c::properties);
        assertThrows(MillraceException.class, () -> c.grow(3, null, null));
        assertThrows(MillraceException.class,
                () -> stubs.nccl.joinGrowing(stubs.device(), stubs.nccl.newUniqueId(), 3, 2, NcclConfig.DEFAULT));
        assertThrows(MillraceException.class, () -> c.memory().suspend());
        assertThrows(MillraceException.class, () -> c.memory().resume());
        assertThrows(MillraceException.class, () -> c.memory().isSuspended());
        assertThrows(MillraceException.class, () -> c.signal(0, 0, 0, stream));
        assertThrows(MillraceException.class, () -> c.waitSignals(List.of(), stream));
        assertThrows(MillraceException.class, () -> c.putSignal(buffer, 1, DataType.INT8, 0, null, 0, 0, 0, stream));
        assertThrows(MillraceException.class, () -> stubs.nccl.parameters().names());
        assertThrows(MillraceException.class, () -> stubs.nccl.parameters().text("NCCL_ALGO"));
        assertThrows(MillraceException.class, () -> stubs.nccl.parameters().print());
        String parameters =
                assertThrows(MillraceException.class, () -> stubs.nccl.parameters().bind("NCCL_ALGO")).getMessage();
        assertTrue(parameters.startsWith("ncclParamBind is not in the loaded NCCL 2.7.8 (" + stubs.ncclStub.path()
                + "): NCCL 2.30.4 and later have it."), parameters);
        assertThrows(MillraceException.class, c::finish);
        assertThrows(MillraceException.class, () -> c.register(buffer));
        assertThrows(MillraceException.class, () -> c.registerWindow(buffer, false));
        assertThrows(MillraceException.class,
                () -> c.newDeviceCommunicator(new NcclDeviceCommunicator.Requirements(1, 0, 0, 0), 22809));
        assertThrows(MillraceException.class, () -> c.scaledSum(1, DataType.FLOAT32));
        assertThrows(MillraceException.class, () -> stubs.nccl.allocate(stubs.device(), 64));
        NcclGroup group = stubs.nccl.group();
        assertThrows(MillraceException.class, group::simulate);
        group.close();
        stubs.ncclStub.fail("ncclBroadcast", 5, 1);
        String failure =
                assertThrows(NcclException.class, () -> c.broadcast(buffer, buffer, 1, DataType.INT8, 0, stream))
                        .getMessage();
        assertTrue(failure.contains("ncclInvalidUsage (5)"), failure);
        assertFalse(failure.contains("NCCL reports"), failure);
        c.close();
    }
}
