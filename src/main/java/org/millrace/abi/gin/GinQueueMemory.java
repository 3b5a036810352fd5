package org.millrace.abi.gin;

import java.lang.foreign.MemorySegment;
import java.lang.invoke.VarHandle;
import java.util.Objects;
import org.millrace.foreign.PolledStruct;
import org.millrace.foreign.Words;

/**
 * The queues of a GIN context. Each peer has a queue of {@code queueSize} descriptors. The queues follow one another in
 * memory.
 *
 * <pre>
 *    0                       queueSize * bytes
 *    +-----+-----+- - -+-----+-----+-----+- - -
 *    | 0   | 1   |     |n - 1| 0   | 1   |
 *    +-----+-----+- - -+-----+-----+-----+- - -
 *     `---- of peer 0 ------' `---- of peer 1 ---
 * </pre>
 *
 * <p>
 * While the flag of a word is not set, the word belongs to the kernel. When the kernel has set the flag, the word
 * belongs to the proxy until the proxy stores 0. The kernel stores a descriptor's words in no particular order. The
 * proxy loads the words, and then executes an acquire fence. This fence pairs with the fence that the kernel executes
 * before it stores the descriptor. The data that the kernel stored in windows is then visible to the proxy. The proxy's
 * stores of 0 are plain, because its release of {@code cis} publishes them. The kernel uses the place of the descriptor
 * again only after it has seen this release.
 */
public final class GinQueueMemory extends PolledStruct {
    /** Number of words of a cache line. A descriptor has one or two lines. */
    private static final int LINE_WORDS = 8;
    private static final long LINE_BYTES = LINE_WORDS * Long.BYTES;

    private final GinDescriptorFormat format;
    private final long descriptorBytes;
    private final int queueSize;
    private final int peers;

    private GinQueueMemory(MemorySegment segment, GinDescriptorFormat format, int peers, int queueSize) {
        super("the queues of a GIN context", segment, bytes(format, peers, queueSize), 16);
        this.format = format;
        this.descriptorBytes = format.bytes();
        this.queueSize = queueSize;
        this.peers = peers;
    }

    /**
     * {@return a view of the queues in a segment}
     *
     * @param segment   memory of exactly {@link #bytes} bytes, aligned to 16 bytes
     * @param queueSize number of descriptors of each queue, a power of two
     * @throws IllegalArgumentException if the size, the alignment or the number of descriptors is wrong
     */
    public static GinQueueMemory of(MemorySegment segment, GinDescriptorFormat format, int peers, int queueSize) {
        if (queueSize < 1 || Integer.bitCount(queueSize) != 1) {
            throw new IllegalArgumentException("a GIN queue has a power of two of descriptors, not " + queueSize);
        }
        return new GinQueueMemory(segment, format, peers, queueSize);
    }

    /** {@return the size of all queues together, in bytes} */
    public static long bytes(GinDescriptorFormat format, int peers, int queueSize) {
        return format.bytes() * peers * queueSize;
    }

    /** {@return the format of the descriptors} */
    public GinDescriptorFormat format() {
        return format;
    }

    /** {@return the number of descriptors of each queue} */
    public int queueSize() {
        return queueSize;
    }

    /** {@return the offset of a descriptor in the segment, in bytes} */
    public long at(int peer, int index) {
        return ((long) Objects.checkIndex(peer, peers) * queueSize + (index & queueSize - 1)) * descriptorBytes;
    }

    /** {@return whether the first word of a descriptor is present} */
    public boolean isBegun(long at) {
        return isBegunAt(base + at);
    }

    /** {@return the address of the first word of a descriptor} */
    public long address(long at) {
        return base + at;
    }

    /**
     * {@return whether the first word of a descriptor is present}
     *
     * @param address address that {@link #address} returned
     */
    public static boolean isBegunAt(long address) {
        return ((long) Words.LONG.getAcquire(Words.MEMORY, address) & GinDescriptorFormat.FLAG) != 0;
    }

    /**
     * Takes a descriptor out of the queue if all of its words are present. Stores only the first {@link #LINE_WORDS}
     * words in an array, because all further words are reserved. The array's content is undefined if a word is missing.
     *
     * @return false if a word is still missing; the queue is then unchanged
     */
    public boolean take(long at, long[] into) {
        long address = base + at;
        boolean hasSecondLine = format.words() > LINE_WORDS;
        long flags = GinDescriptorFormat.FLAG & load(address, into);
        if (hasSecondLine) {
            flags &= commonBits(address + LINE_BYTES);
        }
        if (flags == 0) {
            return false;
        }
        // An acquire after the loads of all words: pairs with the fence that the kernel executes before its stores.
        VarHandle.acquireFence();
        clear(address);
        if (hasSecondLine) {
            clear(address + LINE_BYTES);
        }
        return true;
    }

    /** Loads the words of a line. Returns the bits that are set in all words. */
    private static long load(long address, long[] into) {
        long common = -1;
        for (int word = 0; word < LINE_WORDS; word++) {
            long value = (long) Words.PLAIN_LONG.get(Words.MEMORY, address + (long) word * Long.BYTES);
            into[word] = value;
            common &= value;
        }
        return common;
    }

    private static long commonBits(long address) {
        long common = -1;
        for (int word = 0; word < LINE_WORDS; word++) {
            common &= (long) Words.PLAIN_LONG.get(Words.MEMORY, address + (long) word * Long.BYTES);
        }
        return common;
    }

    private static void clear(long address) {
        for (int word = 0; word < LINE_WORDS; word++) {
            Words.PLAIN_LONG.set(Words.MEMORY, address + (long) word * Long.BYTES, 0L);
        }
    }

    /**
     * Stores a descriptor's words. A reader must not rely on the order of the stores. The posting thread executes a
     * release fence before this call. The fence pairs with the acquires of {@link #take}.
     *
     * @param at offset of the descriptor in the segment; the words there must be 0
     */
    public void storeOpaque(long at, long[] descriptor) {
        int words = format.words();
        for (int word = 0; word < words; word++) {
            Words.LONG.setOpaque(Words.MEMORY, base + at + (long) word * Long.BYTES, descriptor[word]);
        }
    }
}
