package org.millrace.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.ffi.cudart.cudart_h;
import org.millrace.foreign.CFunction;

/** A GPU that this process sees. */
public record CudaDevice(CudaRuntime runtime, int index) {

    /** {@code domain:bus:device.function} and its end, with room to spare. */
    private static final int PCI_BUS_ID_BYTES = 32;

    /** Free and total memory. */
    public record MemoryInfo(long free, long total) {
    }

    /** {@return the model, for instance {@code "NVIDIA H200"}; asking does not take the device into use} */
    public String name() {
        return Properties.of(runtime, index).name();
    }

    /** {@return the size of its memory in bytes; asking does not take the device into use} */
    public long totalMemory() {
        return Properties.of(runtime, index).memory();
    }

    /**
     * How much memory is free. Takes the device into use, which costs some hundred megabytes of its memory the first
     * time.
     */
    public MemoryInfo memoryInfo() {
        try (CurrentDevice _ = makeCurrent(); Arena arena = Arena.ofConfined()) {
            MemorySegment free = arena.allocate(ValueLayout.JAVA_LONG);
            MemorySegment total = arena.allocate(ValueLayout.JAVA_LONG);
            runtime.check(CudaFunction.MEM_GET_INFO, cudart_h.cudaMemGetInfo(free, total));
            return new MemoryInfo(free.get(ValueLayout.JAVA_LONG, 0), total.get(ValueLayout.JAVA_LONG, 0));
        }
    }

    /** {@return the value of a property; what it counts is the attribute's matter} */
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

    /** {@return the generation of its instruction set, for instance {@code "9.0"}} */
    public String computeCapability() {
        return attribute(Attribute.COMPUTE_CAPABILITY_MAJOR) + "." + attribute(Attribute.COMPUTE_CAPABILITY_MINOR);
    }

    /** {@return its slot, by which other tools call it: {@code domain:bus:device.function} in hexadecimal} */
    public String pciBusId() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment id = arena.allocate(PCI_BUS_ID_BYTES);
            runtime.check(CudaFunction.DEVICE_GET_PCI_BUS_ID,
                    cudart_h.cudaDeviceGetPCIBusId(id, PCI_BUS_ID_BYTES, index));
            return id.getString(0);
        }
    }

    /** {@return whether this device can reach the memory of another: {@link #enablePeerAccess} will work} */
    public boolean canAccessPeer(CudaDevice peer) {
        return runtime.intOf(CudaFunction.DEVICE_CAN_ACCESS_PEER,
                out -> cudart_h.cudaDeviceCanAccessPeer(out, index, peer.index)) != 0;
    }

    /**
     * Lets this device's kernels and copies reach another's memory; the other way round is a second call. Enabling it
     * twice is allowed.
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

    /** Takes back what {@link #enablePeerAccess} allowed. */
    public void disablePeerAccess(CudaDevice peer) {
        try (CurrentDevice _ = makeCurrent()) {
            runtime.check(CudaFunction.DEVICE_DISABLE_PEER_ACCESS, cudart_h.cudaDeviceDisablePeerAccess(peer.index));
        }
    }

    /**
     * Makes this the calling thread's current device. Kernel launches and NCCL's initialization go by it; everything
     * else here knows its own device.
     *
     * @return closed on the same thread, it makes the device before current again
     * @throws IllegalStateException on a virtual thread: CUDA's current device belongs to its carrier
     */
    public CurrentDevice makeCurrent() {
        return new CurrentDevice(runtime, index);
    }

    /** {@return a new, idle stream that does not wait for the default stream} */
    public CudaStream newStream() {
        return CudaStream.create(this);
    }

    /**
     * {@return a new, idle stream of some priority that does not wait for the default stream}
     *
     * @param priority the lower the number, the sooner its work is taken; see {@link #streamPriorities()}
     */
    public CudaStream newStream(int priority) {
        return CudaStream.create(this, priority);
    }

    /**
     * {@return the least and the greatest priority that streams of this device can have, in this order; greater
     * priorities are lower numbers}
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
     * @throws CudaException if there is not enough (2)
     */
    public DeviceMemory allocate(long bytes) {
        return DeviceMemory.allocate(this, bytes);
    }

    @Override
    public String toString() {
        return "CUDA device " + index;
    }

    /**
     * What only {@code cudaGetDeviceProperties} tells without taking the device into use: its name and the size of its
     * memory.
     *
     * <p>
     * The structure grows with every release, but begins with {@code char name[256]}, {@code uuid[16]},
     * {@code luid[8]}, {@code unsigned luidDeviceNodeMask}, {@code size_t totalGlobalMem} in all of them (facts:
     * driver_types.h of CUDA 10 to 13). So only this beginning is read, out of a buffer larger than any.
     */
    record Properties(String name, long memory) {

        private static final long BUFFER_BYTES = 16 * 1024;
        private static final long MEMORY_OFFSET = 288;

        static Properties of(CudaRuntime runtime, int device) {
            CudaFunction function = CudaFunction.GET_DEVICE_PROPERTIES;
            // A library keeps the old structure under the old name; where there is a newer one, the name ends in _v2.
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
     * Properties of a GPU that {@code cudaDeviceGetAttribute} knows. {@link CudaDevice#attribute(int)} takes all others
     * by number.
     */
    public enum Attribute {
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

        Attribute(int code) {
            this.code = code;
        }

        /** {@return the value of {@code cudaDeviceAttr}} */
        public int code() {
            return code;
        }
    }
}
