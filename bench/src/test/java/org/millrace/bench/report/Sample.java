package org.millrace.bench.report;

import java.util.Arrays;
import java.util.List;
import org.HdrHistogram.Histogram;
import org.millrace.bench.measure.Samples;

/** Results to write and read. */
final class Sample {

    private Sample() {}

    static Results results(double javaNanos, double cNanos) {
        Results results = new Results();
        results.environment().put("processor", "one <of> \"them\" & another");
        results.notes().add("a note with <markup>");
        results.add(line("get_acquire", javaNanos, cNanos));
        results.add(new Line("fences", "native", "alone", "Reads", "without C", true, 0,
                List.of(new Samples(samples(javaNanos), new double[0]))));
        results.add(new Line("frames", "shm", "roundtrip.4096", "Round trip", "4 KiB", false, 8192,
                List.of(new Samples(samples(900), samples(450)))));
        results.add(latency("java", 100));
        results.add(latency("c", 90));
        return results;
    }

    static Line line(String id, double javaNanos, double cNanos) {
        return new Line("fences", "native", id, "Reads", "get <acquire>", true, 0,
                List.of(new Samples(samples(javaNanos), samples(cNanos))));
    }

    private static Latency latency(String side, long around) {
        Histogram histogram = new Histogram(3);
        for (int i = 0; i < 1000; i++) {
            histogram.recordValue(around + i % 17);
        }
        return new Latency("rings", "threads", "latency", "Round trip", side, histogram, 0.5);
    }

    private static double[] samples(double around) {
        double[] samples = new double[21];
        Arrays.setAll(samples, i -> around * (1 + (i % 5 - 2) * 0.005));
        return samples;
    }
}
