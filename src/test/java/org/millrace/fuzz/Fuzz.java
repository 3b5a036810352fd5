package org.millrace.fuzz;

import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;

/**
 * Mutated inputs for one surface (code that reads untrusted data), derived from recorded inputs. By default the tests
 * run some hundreds or thousands of inputs, which are the same in each run. {@code -Dmillrace.fuzz.seconds=3600} runs
 * new inputs for the given time. {@code -Dmillrace.fuzz.inputs} sets the number of inputs, and
 * {@code -Dmillrace.fuzz.seed} the seed. A failure reports the seed and the bytes.
 */
public final class Fuzz {

    /** Code that takes an input. The code throws an exception only if the input reveals a bug. */
    @FunctionalInterface
    public interface Surface {
        void take(byte[] input) throws Exception;
    }

    private static final long[] ODD = {0, 1, -1, 2, 7, 8, 63, 64, 65, 127, 128, 255, 256, 4095, 4096, 4097, 65535,
            65536, Integer.MAX_VALUE, Integer.MIN_VALUE, 1L << 30, (1L << 30) + 1, 1L << 31, 1L << 32, (1L << 32) - 1,
            Long.MAX_VALUE, Long.MIN_VALUE, Long.MAX_VALUE - 63, -64, -4096};
    /**
     * Maximum number of bytes that the code may allocate for an input, regardless of the lengths that the input states.
     */
    private static final long MAX_ALLOCATED_BYTES = 16 << 20;
    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    private static final int MAX_MUTATIONS = 4;
    private static final int LONGEST = 1 << 16;

    private Fuzz() {}

    /**
     * Runs a surface with {@code inputs} inputs. The property millrace.fuzz.inputs replaces this number. If only
     * millrace.fuzz.seconds is set, the run has a time limit instead. Returns the number of inputs of the run.
     */
    public static long run(String surface, int inputs, List<byte[]> recorded, Surface takes) throws Exception {
        long seconds = Long.getLong("millrace.fuzz.seconds", 0);
        long most = Long.getLong("millrace.fuzz.inputs", seconds > 0 ? Long.MAX_VALUE : inputs);
        long first = Long.getLong("millrace.fuzz.seed", seconds > 0 ? System.nanoTime() : 1);
        long begin = System.nanoTime();
        long number = 0;
        for (; number < most && (seconds == 0 || System.nanoTime() - begin < seconds * 1_000_000_000L); number++) {
            byte[] input = mutated(recorded, new Random(first + number));
            long before = THREADS.getCurrentThreadAllocatedBytes();
            try {
                takes.take(input);
                long allocated = THREADS.getCurrentThreadAllocatedBytes() - before;
                assertTrue(allocated < MAX_ALLOCATED_BYTES, () -> allocated + " bytes were allocated for it");
            } catch (Throwable e) {
                throw new AssertionError(surface + ", input " + number + " of seed " + first
                        + " (-Dmillrace.fuzz.inputs=1 -Dmillrace.fuzz.seed=" + (first + number) + "): "
                        + HexFormat.of().formatHex(input, 0, Math.min(input.length, 512)), e);
            }
        }
        if (most != inputs) {
            System.err.println(surface + ": " + number + " inputs from seed " + first + " in "
                    + (System.nanoTime() - begin) / 1_000_000 + " ms");
        }
        return number;
    }

    static byte[] mutated(List<byte[]> recorded, Random random) {
        byte[] input = pick(recorded, random).clone();
        for (int left = 1 + random.nextInt(MAX_MUTATIONS); left > 0; left--) {
            input = mutate(input, recorded, random);
        }
        return input;
    }

    private static byte[] pick(List<byte[]> recorded, Random random) {
        return recorded.get(random.nextInt(recorded.size()));
    }

    private static byte[] mutate(byte[] input, List<byte[]> recorded, Random random) {
        if (input.length == 0) {
            return pick(recorded, random).clone();
        }
        int at = random.nextInt(input.length);
        switch (random.nextInt(12)) {
            case 0 -> input[at] ^= (byte) (1 << random.nextInt(8));
            case 1 -> input[at] = (byte) random.nextInt(256);
            case 2, 3, 4 -> number(input, at, random);
            case 5 -> input = Arrays.copyOf(input, at);
            case 6 -> { // the input gets longer: some of its bytes are copied
                int bytes = random.nextInt(input.length - at + 1);
                input = join(input, 0, input.length, input, at, Math.min(bytes, LONGEST - input.length));
            }
            case 7 -> { // the beginning of this input, then the end of another input
                byte[] other = pick(recorded, random);
                int from = random.nextInt(other.length + 1);
                input = join(input, 0, at, other, from, other.length - from);
            }
            case 8 -> { // the input loses some of its bytes
                int bytes = random.nextInt(input.length - at + 1);
                input = join(input, 0, at, input, at + bytes, input.length - at - bytes);
            }
            case 9, 10 -> { // a word that was valid in another input replaces a word of this input
                byte[] other = pick(recorded, random);
                int to = at & -Long.BYTES;
                int from = random.nextInt(other.length + 1) & -Long.BYTES;
                int bytes = Math.min(Long.BYTES, Math.min(other.length - from, input.length - to));
                System.arraycopy(other, from, input, to, bytes);
            }
            default -> { // some bytes of another input replace bytes of this input
                byte[] other = pick(recorded, random);
                int bytes = Math.min(random.nextInt(16) + 1, Math.min(other.length, input.length - at));
                System.arraycopy(other, random.nextInt(other.length - bytes + 1), input, at, bytes);
            }
        }
        return input;
    }

    /** Most fields are numbers at multiples of their size. */
    private static void number(byte[] input, int at, Random random) {
        ByteBuffer bytes =
                ByteBuffer.wrap(input).order(random.nextBoolean() ? ByteOrder.LITTLE_ENDIAN : ByteOrder.BIG_ENDIAN);
        int size = 1 << random.nextInt(4);
        int aligned = random.nextInt(4) == 0 ? at : at & -size;
        if (aligned + size > input.length) {
            return;
        }
        long value = random.nextInt(4) == 0 ? random.nextLong() : ODD[random.nextInt(ODD.length)];
        switch (size) {
            case 1 -> bytes.put(aligned, (byte) value);
            case 2 -> bytes.putShort(aligned, (short) value);
            case 4 -> bytes.putInt(aligned, random.nextInt(4) == 0 ? bytes.getInt(aligned) + (int) value : (int) value);
            default -> bytes.putLong(aligned, random.nextInt(4) == 0 ? bytes.getLong(aligned) + value : value);
        }
    }

    private static byte[] join(byte[] first, int from, int bytes, byte[] second, int secondFrom, int secondBytes) {
        byte[] joined = Arrays.copyOfRange(first, from, from + bytes + Math.max(secondBytes, 0));
        System.arraycopy(second, secondFrom, joined, bytes, Math.max(secondBytes, 0));
        return joined;
    }
}
