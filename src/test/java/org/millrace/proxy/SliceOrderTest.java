package org.millrace.proxy;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Random operations. The counted steps equal the steps that NCCL's kernels would count. */
class SliceOrderTest {

    private final Random random = new Random();
    private UnpackReceiveSource.SliceOrder order;
    private long step;
    private long counted;
    private int empties;

    @ParameterizedTest
    @ValueSource(longs = {0, (1L << 31) - 40, (1L << 32) - 40, Long.MAX_VALUE - 40, -40})
    void slicesHaveTheNumbersThatTheKernelGivesThem(long first) {
        for (long seed = 1; seed <= 200; seed++) {
            random.setSeed(seed);
            order = new UnpackReceiveSource.SliceOrder(first);
            step = first;
            counted = first;
            for (int operation = 0; operation < 200; operation++) {
                switch (random.nextInt(4)) {
                    case 0 -> lines(2 + random.nextInt(8));
                    case 1 -> single(1 + random.nextInt(5), seed);
                    case 2 -> nothing();
                    default -> ring(1 + random.nextInt(4), seed);
                }
            }
        }
        assertTrue(empties > 1000, "too few empty slices: " + empties);
    }

    /** LL or LL128 operation of a ring, with empty steps at any place. */
    private void lines(int steps) {
        for (int i = 0; i < steps; i++) {
            if (random.nextInt(3) == 0) {
                order.empty(step++);
            } else {
                order.lines(step++);
            }
        }
    }

    /** Trees, broadcast, send and receive: slices of one step, which are never empty. */
    private void single(int steps, long seed) {
        for (int i = 0; i < steps; i++) {
            slice(1, seed);
        }
    }

    /** An LL operation that moves data only in its last step. */
    private void nothing() {
        order.empty(step++);
        order.lines(step++);
    }

    private void ring(int chunks, long seed) {
        step = (step + 3) & -4;
        for (int chunk = 0; chunk < chunks; chunk++) {
            int full = random.nextInt(3);
            for (int slice = 0; slice < 2; slice++) {
                if (slice < full) {
                    slice(2, seed);
                } else {
                    order.empty(step);
                    step += 2;
                    counted++;
                    empties++;
                }
            }
        }
    }

    private void slice(int steps, long seed) {
        assertEquals(counted++, order.slice(step), "seed " + seed + ", step " + step);
        step += steps;
    }
}
