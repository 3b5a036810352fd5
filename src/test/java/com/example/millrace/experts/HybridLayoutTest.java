package com.example.millrace.experts;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.BitSet;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.device.gin.LsaMemory;

/**
 * The ranges in the window of an exchange do not overlap. Some ranges hold the counts and the metadata, which DeepEP
 * exchanges before it sends the tokens.
 */
class HybridLayoutTest {

    @ParameterizedTest
    @CsvSource({"1, 1, 1", "2, 4, 3", "4, 2, 1", "3, 8, 2"})
    void countsAndMetadataHaveTheirPlaces(int hosts, int perHost, int channels) {
        HostedPlan hosted = new HostedPlan(new ExpertPlan(hosts * perHost, channels, 2, 9, 1, 1, 1), perHost);
        HybridLayout layout = new HybridLayout(hosted);
        assertEquals(Integer.BYTES * (perHost + perHost * HostedPlan.EXPERTS + 1), layout.countsBytes());
        assertEquals(Integer.BYTES * (perHost * 2 + 2), layout.metadataBytes());
        BitSet taken = new BitSet();
        take(taken, 0, layout.rails().windowBytes());
        for (int host = 0; host < hosts; host++) {
            for (long counts : new long[] {layout.countsTo(host), layout.countsFrom(host)}) {
                for (int rank = 0; rank <= perHost; rank++) {
                    take(taken, layout.rankCount(counts, rank), Integer.BYTES);
                    for (int expert = 0; rank < perHost && expert < HostedPlan.EXPERTS; expert++) {
                        take(taken, layout.expertCount(counts, rank, expert), Integer.BYTES);
                    }
                }
            }
            for (int channel = 0; channel < channels; channel++) {
                for (long metadata : new long[] {layout.metadataTo(host, channel),
                        layout.metadataFrom(host, channel)}) {
                    for (int rank = 0; rank <= perHost; rank++) {
                        take(taken, layout.first(metadata, rank), Integer.BYTES);
                        take(taken, layout.last(metadata, rank), Integer.BYTES);
                    }
                }
            }
        }
        assertEquals(taken.length(), taken.cardinality(), "bytes before the rings that are nothing's");
        for (int from = 0; from < perHost; from++) {
            for (int channel = 0; channel < channels; channel++) {
                assertEquals(0, layout.ringSlot(channel, from, 0) % Long.BYTES);
                take(taken, layout.ringSlot(channel, from, 0), 2 * layout.railPlan().tokenBytes());
                take(taken, layout.tail(channel, from), Long.BYTES);
                take(taken, layout.head(channel, from), Long.BYTES);
                take(taken, layout.total(channel, from), Long.BYTES);
            }
            for (int expert = 0; expert < HostedPlan.EXPERTS; expert++) {
                take(taken, layout.expertTotal(expert, from), Long.BYTES);
            }
        }
        take(taken, layout.addresses(), LsaMemory.bytes(perHost));
        take(taken, layout.barrier(), Long.BYTES);
        assertEquals(layout.windowBytes(), taken.length());
    }

    private static void take(BitSet taken, long from, long bytes) {
        BitSet part = new BitSet();
        part.set(Math.toIntExact(from), Math.toIntExact(from + bytes));
        assertTrue(!taken.intersects(part), from + " has two things");
        taken.or(part);
    }
}
