package org.millrace.bench.ring;

import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Locale;
import org.millrace.bench.comparator.CLibrary;
import org.millrace.bench.measure.Loop;

/** The protocols, and the loops of both sides. */
public enum RingProtocol {
    /** Protocol Simple. */
    SIMPLE {
        @Override
        Loop javaDevice(RingMemory ring, int bytes, int window) {
            return new SimpleLoops.Device(ring, bytes, window, null);
        }

        @Override
        Loop javaProxy(RingMemory ring, int bytes) {
            return new SimpleLoops.Proxy(ring, bytes);
        }
    },
    /** Protocol LL. */
    LL {
        @Override
        Loop javaDevice(RingMemory ring, int bytes, int window) {
            return new LLLoops.Device(ring, bytes, window);
        }

        @Override
        Loop javaProxy(RingMemory ring, int bytes) {
            return new LLLoops.Proxy(ring, bytes);
        }
    },
    /** Protocol LL128. */
    LL128 {
        @Override
        Loop javaDevice(RingMemory ring, int bytes, int window) {
            return new LL128Loops.Device(ring, bytes, window);
        }

        @Override
        Loop javaProxy(RingMemory ring, int bytes) {
            return new LL128Loops.Proxy(ring, bytes);
        }
    };

    abstract Loop javaDevice(RingMemory ring, int bytes, int window);

    abstract Loop javaProxy(RingMemory ring, int bytes);

    private String suffix() {
        return name().toLowerCase(Locale.ROOT);
    }

    /**
     * Returns the posting side.
     *
     * @param ring   ring to use
     * @param bytes  payload of a step
     * @param window number of steps in flight
     * @param c      the comparators for C's loop, null for Java's
     * @return the loop
     */
    public Loop device(RingMemory ring, int bytes, int window, CLibrary c) {
        return c == null ? javaDevice(ring, bytes, window)
                : c.loop("ring_post_" + suffix(), ring.segment(), RingMemory.arguments(bytes, window, null));
    }

    /**
     * Returns the taking side.
     *
     * @param ring  ring to use
     * @param bytes payload of a step
     * @param c     the comparators for C's loop, null for Java's
     * @return the loop
     */
    public Loop proxy(RingMemory ring, int bytes, CLibrary c) {
        return c == null ? javaProxy(ring, bytes)
                : c.loop("ring_take_" + suffix(), ring.segment(), RingMemory.arguments(bytes, 1, null));
    }

    /**
     * Returns Java's posting side of protocol Simple without data, which records the time of every step.
     *
     * @param ring    ring to use
     * @param samples nanoseconds of each step of a run, by its number
     * @return the loop
     */
    public static Loop timedDevice(RingMemory ring, long[] samples) {
        return new SimpleLoops.Device(ring, 0, 1, samples);
    }

    /**
     * Returns the same loop in C.
     *
     * @param ring    ring to use
     * @param samples nanoseconds of each step of a run, by its number
     * @param c       the comparators
     * @return the loop
     */
    public static Loop timedDevice(RingMemory ring, MemorySegment samples, CLibrary c) {
        return c.loop("ring_post_simple", ring.segment(), RingMemory.arguments(0, 1, samples));
    }

    /**
     * Returns Java's posting and taking sides of protocol Simple without data, over a ring that is a constant for the
     * compiler.
     *
     * @param ring the only ring of this JVM
     * @return posting side and taking side
     */
    public static List<Loop> constant(RingMemory ring) {
        ConstantLoops.choose(ring);
        return List.of(ConstantLoops.device(), ConstantLoops.proxy());
    }
}
