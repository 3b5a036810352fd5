package org.millrace.cuda;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.millrace.MillraceException;

/** A CUDA runtime that is older than some of the bound functions. */
@ExtendWith(OwnClassLoader.class)
class OldCudaTest {

    @Test
    void missingFunctionsFailOnlyWhenTheyAreCalled() {
        StubLibrary stub = StubLibrary.cudart("-DSTUB_OLD");
        CudaRuntime cuda = CudaRuntime.load(stub.path().toString());
        try (CudaStream stream = cuda.device(0).newStream()) {
            assertTrue(stream.query());
            stream.beginGraph();
            CudaGraph graph = stream.endGraph();
            String graphs = assertThrows(MillraceException.class, graph::instantiate).getMessage();
            assertTrue(graphs.startsWith("cudaGraphInstantiateWithFlags is not in the loaded CUDA runtime 12.4"),
                    graphs);
        }
        String modules = assertThrows(MillraceException.class, () -> CudaModule.load(cuda, new byte[1])).getMessage();
        assertTrue(modules.contains("cudaLibraryLoadData") && modules.contains(stub.path().toString())
                && modules.contains("12.8 and later"), modules);
    }
}
