package org.millrace.nccl;

import java.util.List;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.CudaRuntime;
import org.millrace.cuda.CudaStream;
import org.millrace.cuda.StubLibrary;

/** The stand-ins for libnccl and libcudart, bound in this class loader. */
final class Stubs {

    private static Stubs loaded;

    final StubLibrary ncclStub;
    final StubLibrary cudaStub;
    final NcclLibrary nccl;
    final CudaRuntime cuda;

    private Stubs(String... flags) {
        ncclStub = StubLibrary.nccl(flags);
        cudaStub = StubLibrary.cudart();
        nccl = NcclLibrary.load(ncclStub.path().toString());
        cuda = CudaRuntime.load(cudaStub.path().toString());
    }

    static Stubs load(String... flags) {
        if (loaded == null) {
            loaded = new Stubs(flags);
        }
        loaded.ncclStub.fail("", 0, 0);
        loaded.ncclStub.async(0, 0);
        loaded.record(true);
        loaded.calls();
        return loaded;
    }

    void record(boolean on) {
        ncclStub.recordCalls(on);
        cudaStub.recordCalls(on);
    }

    List<String> calls() {
        cudaStub.allCalls();
        return ncclStub.allCalls();
    }

    CudaDevice device() {
        return cuda.device(1);
    }

    CudaStream stream() {
        return device().newStream();
    }

    /** Returns rank 1 of 2. */
    NcclCommunicator communicator() {
        NcclCommunicator communicator = nccl.join(device(), nccl.newUniqueId(), 2, 1);
        calls();
        return communicator;
    }
}
