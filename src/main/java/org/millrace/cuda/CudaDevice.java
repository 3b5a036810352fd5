package org.millrace.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.ffi.cudart.cudart_h;
import org.millrace.foreign.CFunction;

/** A GPU that this process sees. */
public record CudaDevice(CudaRuntime runtime, int index) {

    /** Size of {@code domain:bus:device.function} and its terminator in bytes, with spare room. */
    private static final int PCI_BUS_ID_BYTES = 32;

    /** Free and total memory of a GPU, in bytes. */
    public record MemoryInfo(long free, long total) {
    }

    /** {@return the model, for instance {@code "NVIDIA H200"}; the call does not initialize the device in CUDA} */
    public String name() {
        return Properties.of(runtime, index).name();
    }

    /** {@return the size of the device's memory in bytes; the call does not initialize the device in CUDA} */
    public long totalMemory() {
        return Properties.of(runtime, index).memory();
    }

    /**
     * Returns the free and the total memory. The first call initializes the device in CUDA, which occupies several
     * hundred megabytes of the device's memory.
     */
    public MemoryInfo memoryInfo() {
        try (CurrentDevice _ = makeCurrent(); Arena arena = Arena.ofConfined()) {
            MemorySegment free = arena.allocate(ValueLayout.JAVA_LONG);
            MemorySegment total = arena.allocate(ValueLayout.JAVA_LONG);
            runtime.check(CudaFunction.MEM_GET_INFO, cudart_h.cudaMemGetInfo(free, total));
            return new MemoryInfo(free.get(ValueLayout.JAVA_LONG, 0), total.get(ValueLayout.JAVA_LONG, 0));
        }
    }

    /** {@return the value of a property, in the unit of the attribute} */
    public int attribute(Attribute attribute) {
        return attribute(attribute.code());
    }

    /**
     * {@return the value of a property that {@link Attribute} does not name}
     *
     * @param code a value of {@code cudaDeviceAttr}
     */
    public int attribute(int code) {
        return runtime.intOf(CudaFunction.DEVICE_GET_ATTRIBUTE,
                out -> cudart_h.cudaDeviceGetAttribute(out, code, index));
    }

    /** {@return the generation of the device's instruction set, for instance {@code "9.0"}} */
    public String computeCapability() {
        return attribute(Attribute.COMPUTE_CAPABILITY_MAJOR) + "." + attribute(Attribute.COMPUTE_CAPABILITY_MINOR);
    }

    /**
     * {@return the device's PCI address, which other tools use as its name: {@code domain:bus:device.function} in
     * hexadecimal}
     */
    public String pciBusId() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment id = arena.allocate(PCI_BUS_ID_BYTES);
            runtime.check(CudaFunction.DEVICE_GET_PCI_BUS_ID,
                    cudart_h.cudaDeviceGetPCIBusId(id, PCI_BUS_ID_BYTES, index));
            return id.getString(0);
        }
    }

    /** {@return whether this device can reach the memory of another device} If not, {@link #enablePeerAccess} fails. */
    public boolean canAccessPeer(CudaDevice peer) {
        return runtime.intOf(CudaFunction.DEVICE_CAN_ACCESS_PEER,
                out -> cudart_h.cudaDeviceCanAccessPeer(out, index, peer.index)) != 0;
    }

    /**
     * Lets this device's kernels and copies access another device's memory. The opposite direction needs a second call.
     * May be called twice.
     */
    public void enablePeerAccess(CudaDevice peer) {
        try (CurrentDevice _ = makeCurrent()) {
            int code = cudart_h.cudaDeviceEnablePeerAccess(peer.index, 0);
            if (code == cudart_h.cudaErrorPeerAccessAlreadyEnabled()) {
                runtime.forgetLastError();
            } else {
                runtime.check(CudaFunction.DEVICE_ENABLE_PEER_ACCESS, code);
            }
        }
    }

    /** Revokes the access that {@link #enablePeerAccess} granted. */
    public void disablePeerAccess(CudaDevice peer) {
        try (CurrentDevice _ = makeCurrent()) {
            runtime.check(CudaFunction.DEVICE_DISABLE_PEER_ACCESS, cudart_h.cudaDeviceDisablePeerAccess(peer.index));
        }
    }

    /**
     * Makes this device the calling thread's current device. Kernel launches and NCCL's initialization use the current
     * device. All other methods of this package use the device of their object and do not need this call.
     *
     * @return object that makes the previous device current again when it is closed on the same thread
     * @throws IllegalStateException on a virtual thread, because CUDA sets the current device for the thread's carrier
     */
    public CurrentDevice makeCurrent() {
        return new CurrentDevice(runtime, index);
    }

    /** {@return a new, idle stream that does not wait for the default stream} */
    public CudaStream newStream() {
        return CudaStream.create(this);
    }

    /**
     * {@return a new, idle stream that has the given priority and does not wait for the default stream}
     *
     * @param priority streams with lower numbers run first; see {@link #streamPriorities()}
     */
    public CudaStream newStream(int priority) {
        return CudaStream.create(this, priority);
    }

    /**
     * {@return the number of the lowest priority and the number of the highest priority for streams of this device, in
     * this order} A higher priority has a lower number.
     */
    public int[] streamPriorities() {
        try (CurrentDevice _ = makeCurrent(); Arena arena = Arena.ofConfined()) {
            MemorySegment least = arena.allocate(ValueLayout.JAVA_INT);
            MemorySegment greatest = arena.allocate(ValueLayout.JAVA_INT);
            runtime.check(CudaFunction.DEVICE_GET_STREAM_PRIORITY_RANGE,
                    cudart_h.cudaDeviceGetStreamPriorityRange(least, greatest));
            return new int[] {least.get(ValueLayout.JAVA_INT, 0), greatest.get(ValueLayout.JAVA_INT, 0)};
        }
    }

    /**
     * {@return new memory of this device, aligned to 256 bytes}
     *
     * @throws CudaException if the device has not enough free memory (error 2)
     */
    public DeviceMemory allocate(long bytes) {
        return DeviceMemory.allocate(this, bytes);
    }

    @Override
    public String toString() {
        return "CUDA device " + index;
    }

    /**
     * The two properties that only {@code cudaGetDeviceProperties} returns without initializing the device: its name
     * and the size of its memory.
     *
     * <p>
     * The structure grows with every release. The structure of every release begins with {@code char name[256]},
     * {@code uuid[16]}, {@code luid[8]}, {@code unsigned luidDeviceNodeMask}, {@code size_t totalGlobalMem} (source:
     * driver_types.h of CUDA 10 to 13). Therefore only this beginning is read. The buffer for the structure is larger
     * than the structure in each of the releases.
     */
    record Properties(String name, long memory) {

        private static final long BUFFER_BYTES = 16 * 1024;
        private static final long MEMORY_OFFSET = 288;

        static Properties of(CudaRuntime runtime, int device) {
            CudaFunction function = CudaFunction.GET_DEVICE_PROPERTIES;
            // The function without a version in its name always returns the oldest structure. If the library also has a
            // function for a newer structure, the name of that function ends in _v2.
            MemorySegment address = runtime.library()
                    .find(function.symbol() + "_v2")
                    .or(() -> runtime.library().find(function.symbol()))
                    .orElseThrow();
            try (Arena arena = Arena.ofConfined()) {
                MemorySegment buffer = arena.allocate(BUFFER_BYTES, Long.BYTES);
                runtime.check(function, (int) CFunction.at(address).call(buffer.address(), device));
                return new Properties(buffer.getString(0), buffer.get(ValueLayout.JAVA_LONG, MEMORY_OFFSET));
            }
        }
    }

    /**
     * Properties that {@code cudaDeviceGetAttribute} returns for a GPU. {@link CudaDevice#attribute(int)} reads
     * properties that are not listed here.
     */
    public enum Attribute {
        /** Maximum number of threads in one block. */
        MAX_THREADS_PER_BLOCK(cudart_h.cudaDevAttrMaxThreadsPerBlock()),
        /** Number of threads of a warp, which execute together. */
        WARP_SIZE(cudart_h.cudaDevAttrWarpSize()),
        /** Number of multiprocessors of the GPU. */
        MULTIPROCESSOR_COUNT(cudart_h.cudaDevAttrMultiProcessorCount()),
        /** Maximum shared memory of a block without {@link CudaKernel#maxDynamicSharedMemory}, in bytes. */
        MAX_SHARED_MEMORY_PER_BLOCK(cudart_h.cudaDevAttrMaxSharedMemoryPerBlock()),
        /** Maximum shared memory of a block with {@link CudaKernel#maxDynamicSharedMemory}, in bytes. */
        MAX_SHARED_MEMORY_PER_BLOCK_OPTIN(cudart_h.cudaDevAttrMaxSharedMemoryPerBlockOptin()),
        /** Size of the second-level cache in bytes. */
        L2_CACHE_SIZE(cudart_h.cudaDevAttrL2CacheSize()),
        /** Number of copy engines, which copy while kernels run. */
        ASYNC_ENGINE_COUNT(cudart_h.cudaDevAttrAsyncEngineCount()),
        /** 1 if an address denotes the same memory for the host and all devices. */
        UNIFIED_ADDRESSING(cudart_h.cudaDevAttrUnifiedAddressing()),
        /** 1 if the device can use mapped host memory. */
        CAN_MAP_HOST_MEMORY(cudart_h.cudaDevAttrCanMapHostMemory()),
        /** 1 if {@code cudaHostRegister} works. */
        HOST_REGISTER_SUPPORTED(cudart_h.cudaDevAttrHostRegisterSupported()),
        /** 1 if the device sees registered host memory at the host's own address. */
        CAN_USE_HOST_POINTER_FOR_REGISTERED_MEMORY(cudart_h.cudaDevAttrCanUseHostPointerForRegisteredMem()),
        /** 1 if CPU and GPU atomics on host memory are atomic with respect to each other. */
        HOST_NATIVE_ATOMIC_SUPPORTED(cudart_h.cudaDevAttrHostNativeAtomicSupported()),
        /** 1 if the device supports cooperative launches: all blocks run at the same time. */
        COOPERATIVE_LAUNCH(cudart_h.cudaDevAttrCooperativeLaunch()),
        /** 1 if other PCI devices can reach this device's memory. */
        GPU_DIRECT_RDMA_SUPPORTED(cudart_h.cudaDevAttrGPUDirectRDMASupported()),
        /** Major number of the compute capability, before the dot. */
        COMPUTE_CAPABILITY_MAJOR(cudart_h.cudaDevAttrComputeCapabilityMajor()),
        /** Minor number of the compute capability, after the dot. */
        COMPUTE_CAPABILITY_MINOR(cudart_h.cudaDevAttrComputeCapabilityMinor()),
        /** 1 if the device's memory corrects errors (ECC). */
        ECC_ENABLED(cudart_h.cudaDevAttrEccEnabled()),
        /** NUMA node of the host that is nearest to the device; −1 if unknown. */
        HOST_NUMA_ID(cudart_h.cudaDevAttrHostNumaId());

        private final int code;

        Attribute(int code) {
            this.code = code;
        }

        /** {@return the attribute's value in CUDA's {@code cudaDeviceAttr}} */
        public int code() {
            return code;
        }
    }
}
