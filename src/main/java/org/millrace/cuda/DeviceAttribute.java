package org.millrace.cuda;

import org.millrace.ffi.cudart.cudart_h;

/**
 * Properties of a GPU that {@code cudaDeviceGetAttribute} knows. {@link CudaDevice#attribute(int)} takes all others by
 * number.
 */
public enum DeviceAttribute {
    /** Most threads in one block. */
    MAX_THREADS_PER_BLOCK(cudart_h.cudaDevAttrMaxThreadsPerBlock()),
    /** Threads that execute together. */
    WARP_SIZE(cudart_h.cudaDevAttrWarpSize()),
    /** Number of multiprocessors. */
    MULTIPROCESSOR_COUNT(cudart_h.cudaDevAttrMultiProcessorCount()),
    /** Bytes of shared memory that a block may have without asking for more. */
    MAX_SHARED_MEMORY_PER_BLOCK(cudart_h.cudaDevAttrMaxSharedMemoryPerBlock()),
    /** Bytes of shared memory that a block may ask for. */
    MAX_SHARED_MEMORY_PER_BLOCK_OPTIN(cudart_h.cudaDevAttrMaxSharedMemoryPerBlockOptin()),
    /** Bytes of the second-level cache. */
    L2_CACHE_SIZE(cudart_h.cudaDevAttrL2CacheSize()),
    /** Engines that copy while kernels run. */
    ASYNC_ENGINE_COUNT(cudart_h.cudaDevAttrAsyncEngineCount()),
    /** 1 if one address means the same memory to the host and to all devices. */
    UNIFIED_ADDRESSING(cudart_h.cudaDevAttrUnifiedAddressing()),
    /** 1 if the device can use mapped host memory. */
    CAN_MAP_HOST_MEMORY(cudart_h.cudaDevAttrCanMapHostMemory()),
    /** 1 if {@code cudaHostRegister} works. */
    HOST_REGISTER_SUPPORTED(cudart_h.cudaDevAttrHostRegisterSupported()),
    /** 1 if the device sees registered host memory at the host's own address. */
    CAN_USE_HOST_POINTER_FOR_REGISTERED_MEMORY(cudart_h.cudaDevAttrCanUseHostPointerForRegisteredMem()),
    /** 1 if CPU and GPU atomics on host memory work together. */
    HOST_NATIVE_ATOMIC_SUPPORTED(cudart_h.cudaDevAttrHostNativeAtomicSupported()),
    /** 1 if cooperative launches work. */
    COOPERATIVE_LAUNCH(cudart_h.cudaDevAttrCooperativeLaunch()),
    /** 1 if other PCI devices can reach this device's memory. */
    GPU_DIRECT_RDMA_SUPPORTED(cudart_h.cudaDevAttrGPUDirectRDMASupported()),
    /** Before the dot of the compute capability. */
    COMPUTE_CAPABILITY_MAJOR(cudart_h.cudaDevAttrComputeCapabilityMajor()),
    /** After the dot of the compute capability. */
    COMPUTE_CAPABILITY_MINOR(cudart_h.cudaDevAttrComputeCapabilityMinor()),
    /** 1 if memory errors are corrected. */
    ECC_ENABLED(cudart_h.cudaDevAttrEccEnabled()),
    /** NUMA node of the host that the device is nearest to; −1 if unknown. */
    HOST_NUMA_ID(cudart_h.cudaDevAttrHostNumaId());

    private final int code;

    DeviceAttribute(int code) {
        this.code = code;
    }

    /** {@return the value of {@code cudaDeviceAttr}} */
    public int code() {
        return code;
    }
}
