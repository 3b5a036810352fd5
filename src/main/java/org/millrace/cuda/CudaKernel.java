package org.millrace.cuda;

import java.lang.foreign.MemorySegment;
import org.millrace.ffi.cudart.cudart_h;

/** A kernel of a {@link CudaModule}. A launch allocates nothing. */
public final class CudaKernel {

    private final CudaRuntime runtime;
    private final NativeHandle module;
    private final String name;
    private final MemorySegment address;

    CudaKernel(CudaRuntime runtime, NativeHandle module, String name, MemorySegment address) {
        this.runtime = runtime;
        this.module = module;
        this.name = name;
        this.address = address;
    }

    /** {@return the kernel's name in the image} */
    public String name() {
        return name;
    }

    /**
     * Enqueues a run of the kernel. The stream's device must be the calling thread's {@linkplain CudaDevice#makeCurrent
     * current} device.
     *
     * @param arguments values of the kernel's parameters; copied, so the caller may change them afterwards
     */
    public void launch(LaunchShape shape, KernelParameters arguments, CudaStream stream) {
        MemorySegment queue = stream.handle().enter();
        try {
            module.enter();
            try {
                runtime.check(CudaFunction.LAUNCH_KERNEL, cudart_h.cudaLaunchKernel(address, shape.grid(),
                        shape.block(), arguments.pointers(), shape.sharedBytes(), queue));
            } finally {
                module.exit();
            }
        } finally {
            stream.handle().exit();
        }
    }

    /**
     * {@return the number of blocks of this kernel that can run on one multiprocessor of the current device at the same
     * time; 0 if none fits}
     *
     * @param threads     number of threads of a block
     * @param sharedBytes dynamic shared memory of a block, in bytes
     */
    public int maxActiveBlocksPerMultiprocessor(int threads, long sharedBytes) {
        module.enter();
        try {
            return runtime.intOf(CudaFunction.OCCUPANCY_MAX_ACTIVE_BLOCKS_PER_MULTIPROCESSOR,
                    out -> cudart_h.cudaOccupancyMaxActiveBlocksPerMultiprocessor(out, address, threads, sharedBytes));
        } finally {
            module.exit();
        }
    }

    /**
     * Raises the kernel's limit of shared memory. Without this call, the limit is 48 KiB.
     *
     * @param bytes maximum dynamic shared memory of a block, in bytes
     */
    public void maxDynamicSharedMemory(CudaDevice device, int bytes) {
        runtime.require(CudaFunction.KERNEL_SET_ATTRIBUTE_FOR_DEVICE);
        module.enter();
        try {
            runtime.check(CudaFunction.KERNEL_SET_ATTRIBUTE_FOR_DEVICE, cudart_h.cudaKernelSetAttributeForDevice(
                    address, cudart_h.cudaFuncAttributeMaxDynamicSharedMemorySize(), bytes, device.index()));
        } finally {
            module.exit();
        }
    }
}
