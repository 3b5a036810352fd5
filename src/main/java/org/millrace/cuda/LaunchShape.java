package org.millrace.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import org.millrace.ffi.cudart.dim3;

/** Numbers of blocks and threads of a kernel launch. An object is created once and used for any number of launches. */
public final class LaunchShape {

    private final MemorySegment grid = dim3.allocate(Arena.ofAuto());
    private final MemorySegment block = dim3.allocate(Arena.ofAuto());
    private final long sharedBytes;

    private LaunchShape(int[] grid, int[] block, long sharedBytes) {
        fill(this.grid, grid, "grid");
        fill(this.block, block, "block");
        if (sharedBytes < 0) {
            throw new IllegalArgumentException(
                    "a launch with " + sharedBytes + " bytes of shared memory: the size must not be negative");
        }
        this.sharedBytes = sharedBytes;
    }

    /**
     * {@return the shape of a one-dimensional launch, without dynamic shared memory}
     *
     * @param blocks  number of blocks; 1 or more
     * @param threads number of threads in a block; 1 or more, at most
     *                {@link CudaDevice.Attribute#MAX_THREADS_PER_BLOCK}, 1024 on current GPUs
     */
    public static LaunchShape of(int blocks, int threads) {
        return new LaunchShape(new int[] {blocks, 1, 1}, new int[] {threads, 1, 1}, 0);
    }

    /**
     * {@return the shape of a launch with up to three dimensions}
     *
     * @param grid  number of blocks in x, y and z
     * @param block number of threads of each block in x, y and z
     */
    public static LaunchShape of(int[] grid, int[] block, long sharedBytes) {
        return new LaunchShape(grid, block, sharedBytes);
    }

    MemorySegment grid() {
        return grid;
    }

    MemorySegment block() {
        return block;
    }

    long sharedBytes() {
        return sharedBytes;
    }

    private static void fill(MemorySegment target, int[] extent, String what) {
        if (extent.length != 3 || extent[0] < 1 || extent[1] < 1 || extent[2] < 1) {
            throw new IllegalArgumentException(
                    "a " + what + " has three extents of 1 or more, not " + Arrays.toString(extent));
        }
        dim3.x(target, extent[0]);
        dim3.y(target, extent[1]);
        dim3.z(target, extent[2]);
    }
}
