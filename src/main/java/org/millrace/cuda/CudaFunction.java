package org.millrace.cuda;

import java.util.List;
import org.jspecify.annotations.Nullable;
import org.millrace.library.NativeLibrary;

/**
 * Functions of the CUDA runtime that Millrace calls. The release that is noted at a function is the first CUDA release
 * that has the function in its libcudart (source: CUDA's release notes and headers).
 */
enum CudaFunction implements NativeLibrary.NativeFunction {
    RUNTIME_GET_VERSION("cudaRuntimeGetVersion"),
    DRIVER_GET_VERSION("cudaDriverGetVersion"),
    GET_ERROR_NAME("cudaGetErrorName"),
    GET_ERROR_STRING("cudaGetErrorString"),
    GET_LAST_ERROR("cudaGetLastError"),
    GET_DEVICE_COUNT("cudaGetDeviceCount"),
    GET_DEVICE("cudaGetDevice"),
    SET_DEVICE("cudaSetDevice"),
    DEVICE_GET_ATTRIBUTE("cudaDeviceGetAttribute"),
    DEVICE_GET_PCI_BUS_ID("cudaDeviceGetPCIBusId"),
    DEVICE_GET_BY_PCI_BUS_ID("cudaDeviceGetByPCIBusId"),
    DEVICE_GET_STREAM_PRIORITY_RANGE("cudaDeviceGetStreamPriorityRange"),
    DEVICE_CAN_ACCESS_PEER("cudaDeviceCanAccessPeer"),
    DEVICE_ENABLE_PEER_ACCESS("cudaDeviceEnablePeerAccess"),
    DEVICE_DISABLE_PEER_ACCESS("cudaDeviceDisablePeerAccess"),
    STREAM_CREATE_WITH_FLAGS("cudaStreamCreateWithFlags"),
    STREAM_CREATE_WITH_PRIORITY("cudaStreamCreateWithPriority"),
    STREAM_DESTROY("cudaStreamDestroy"),
    STREAM_QUERY("cudaStreamQuery"),
    STREAM_WAIT_EVENT("cudaStreamWaitEvent"),
    LAUNCH_HOST_FUNC("cudaLaunchHostFunc"),
    EVENT_CREATE_WITH_FLAGS("cudaEventCreateWithFlags"),
    EVENT_DESTROY("cudaEventDestroy"),
    EVENT_RECORD("cudaEventRecord"),
    EVENT_QUERY("cudaEventQuery"),
    EVENT_ELAPSED_TIME("cudaEventElapsedTime"),
    STREAM_BEGIN_CAPTURE("cudaStreamBeginCapture"),
    STREAM_END_CAPTURE("cudaStreamEndCapture"),
    STREAM_IS_CAPTURING("cudaStreamIsCapturing"),
    GRAPH_INSTANTIATE_WITH_FLAGS("cudaGraphInstantiateWithFlags", "11.4"),
    GRAPH_LAUNCH("cudaGraphLaunch"),
    GRAPH_EXEC_DESTROY("cudaGraphExecDestroy"),
    GRAPH_DESTROY("cudaGraphDestroy"),
    MALLOC("cudaMalloc"),
    FREE("cudaFree"),
    MEM_GET_INFO("cudaMemGetInfo"),
    POINTER_GET_ATTRIBUTES("cudaPointerGetAttributes"),
    HOST_ALLOC("cudaHostAlloc"),
    FREE_HOST("cudaFreeHost"),
    HOST_GET_DEVICE_POINTER("cudaHostGetDevicePointer"),
    HOST_REGISTER("cudaHostRegister"),
    HOST_UNREGISTER("cudaHostUnregister"),
    MEMCPY("cudaMemcpy"),
    MEMCPY_ASYNC("cudaMemcpyAsync"),
    MEMSET("cudaMemset"),
    MEMSET_ASYNC("cudaMemsetAsync"),
    LAUNCH_KERNEL("cudaLaunchKernel"),
    OCCUPANCY_MAX_ACTIVE_BLOCKS_PER_MULTIPROCESSOR("cudaOccupancyMaxActiveBlocksPerMultiprocessor"),
    LIBRARY_LOAD_DATA("cudaLibraryLoadData", "12.8"),
    LIBRARY_UNLOAD("cudaLibraryUnload", "12.8"),
    LIBRARY_GET_KERNEL("cudaLibraryGetKernel", "12.8"),
    KERNEL_SET_ATTRIBUTE_FOR_DEVICE("cudaKernelSetAttributeForDevice", "12.8"),
    /**
     * Declared here and not in the generated headers, because the structure that the function fills changes with every
     * release. See {@link CudaDevice.Properties}.
     */
    GET_DEVICE_PROPERTIES("cudaGetDeviceProperties");

    static final List<CudaFunction> ALL = List.of(values());

    private final Export export;

    CudaFunction(String symbol) {
        this(symbol, null);
    }

    CudaFunction(String symbol, @Nullable String since) {
        export = new Export(symbol, since);
    }

    @Override
    public Export export() {
        return export;
    }
}
