package org.millrace.bench.report;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.zip.DataFormatException;
import org.HdrHistogram.Histogram;
import org.millrace.bench.measure.Modes;
import org.millrace.bench.measure.Ratio;
import org.millrace.bench.measure.Samples;
import org.millrace.bench.measure.Statistics;

/**
 * Results as JSON. Samples and histograms (HdrHistogram's compressed encoding in base 64) are read back. Medians,
 * ratios and percentiles are written for other programs.
 */
public final class ResultFile {

    private static final String FORMAT = "millrace-bench-1";

    private ResultFile() {}

    /**
     * Writes results.
     *
     * @param results measured results
     * @param file    file to write
     * @throws IOException if it cannot be written
     */
    public static void write(Results results, Path file) throws IOException {
        Map<String, Object> all = new LinkedHashMap<>();
        all.put("format", FORMAT);
        all.put("environment", results.environment());
        all.put("notes", results.notes());
        all.put("lines", results.lines().stream().map(ResultFile::line).toList());
        all.put("latencies", results.latencies().stream().map(ResultFile::latency).toList());
        Files.writeString(file, JsonText.write(all));
    }

    /**
     * Reads results.
     *
     * @param file file that {@link #write} wrote
     * @return the results
     * @throws IOException if it cannot be read, or has another format
     */
    public static Results read(Path file) throws IOException {
        try {
            Map<?, ?> all = (Map<?, ?>) JsonText.read(Files.readString(file));
            if (!FORMAT.equals(all.get("format"))) {
                throw new IOException(file + " is no result of this program: its format is '" + all.get("format")
                        + "', not '" + FORMAT + "'");
            }
            Results results = new Results();
            ((Map<?, ?>) all.get("environment"))
                    .forEach((name, value) -> results.environment().put((String) name, (String) value));
            ((List<?>) all.get("notes")).forEach(note -> results.notes().add((String) note));
            for (Object each : (List<?>) all.get("lines")) {
                results.add(line((Map<?, ?>) each));
            }
            for (Object each : (List<?>) all.get("latencies")) {
                results.add(latency((Map<?, ?>) each));
            }
            return results;
        } catch (IllegalArgumentException | ClassCastException | NullPointerException | DataFormatException e) {
            throw new IOException(file + " is no result of this program, or damaged: " + e, e);
        }
    }

    private static Map<String, Object> line(Line line) {
        Map<String, Object> map = new LinkedHashMap<>();
        map.put("suite", line.suite());
        map.put("variant", line.variant());
        map.put("id", line.id());
        map.put("group", line.group());
        map.put("title", line.title());
        map.put("sameWay", line.sameWay());
        map.put("bytes", line.bytes());
        map.put("javaNanos", summary(line.java()));
        if (line.hasC()) {
            Ratio ratio = line.ratio();
            map.put("cNanos", summary(line.c()));
            map.put("ratio", ordered("value", ratio.value(), "low", ratio.low(), "high", ratio.high()));
        }
        Modes modes = line.modes();
        if (modes != null) {
            map.put("modes", ordered("low", modes.low(), "high", modes.high(), "shareOfHigh", modes.share()));
        }
        map.put("forks",
                line.forks().stream().map(fork -> ordered("java", list(fork.java()), "c", list(fork.c()))).toList());
        return map;
    }

    /** Returns a map with a fixed order of entries. */
    private static Map<String, Object> ordered(Object... namesAndValues) {
        Map<String, Object> map = new LinkedHashMap<>();
        for (int i = 0; i < namesAndValues.length; i += 2) {
            map.put((String) namesAndValues[i], namesAndValues[i + 1]);
        }
        return map;
    }

    private static Map<String, Object> summary(double[] samples) {
        Map<String, Object> map = new LinkedHashMap<>();
        map.put("median", Statistics.median(samples));
        map.put("lowerQuartile", Statistics.quantile(samples, 0.25));
        map.put("upperQuartile", Statistics.quantile(samples, 0.75));
        return map;
    }

    private static Line line(Map<?, ?> map) {
        List<Samples> forks = ((List<?>) map.get("forks")).stream()
                .map(each -> (Map<?, ?>) each)
                .map(fork -> new Samples(array(fork.get("java")), array(fork.get("c"))))
                .toList();
        return new Line(text(map, "suite"), text(map, "variant"), text(map, "id"), text(map, "group"),
                text(map, "title"), (Boolean) map.get("sameWay"), ((Double) map.get("bytes")).longValue(), forks);
    }

    private static Map<String, Object> latency(Latency latency) {
        Map<String, Object> map = new LinkedHashMap<>();
        map.put("suite", latency.suite());
        map.put("variant", latency.variant());
        map.put("id", latency.id());
        map.put("title", latency.title());
        map.put("side", latency.side());
        map.put("cpuShare", latency.cpuShare());
        Map<String, Object> percentiles = new LinkedHashMap<>();
        for (double percent : new double[] {50, 90, 99, 99.9, 99.99, 100}) {
            percentiles.put(String.valueOf(percent), latency.at(percent));
        }
        map.put("nanosAtPercentile", percentiles);
        map.put("histogram", encode(latency.histogram()));
        return map;
    }

    private static Latency latency(Map<?, ?> map) throws DataFormatException {
        Object share = map.get("cpuShare");
        return new Latency(text(map, "suite"), text(map, "variant"), text(map, "id"), text(map, "title"),
                text(map, "side"), decode(text(map, "histogram")), share == null ? Double.NaN : (Double) share);
    }

    private static String encode(Histogram histogram) {
        ByteBuffer bytes = ByteBuffer.allocate(histogram.getNeededByteBufferCapacity());
        int length = histogram.encodeIntoCompressedByteBuffer(bytes);
        return Base64.getEncoder().encodeToString(Arrays.copyOf(bytes.array(), length));
    }

    private static Histogram decode(String text) throws DataFormatException {
        return Histogram.decodeFromCompressedByteBuffer(ByteBuffer.wrap(Base64.getDecoder().decode(text)), 0);
    }

    private static String text(Map<?, ?> map, String name) {
        return (String) map.get(name);
    }

    private static List<Double> list(double[] values) {
        return Arrays.stream(values).boxed().toList();
    }

    private static double[] array(Object list) {
        return ((List<?>) list).stream().mapToDouble(value -> (Double) value).toArray();
    }
}
