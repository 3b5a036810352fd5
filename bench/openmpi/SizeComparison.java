import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** All rounds of one size, of Millrace and of Open MPI. */
final class SizeComparison {

    /** Out of place or in place. */
    static final class Pair {
        private final List<Double> millrace = new ArrayList<>();
        private final List<Double> openMpi = new ArrayList<>();

        Quartiles millrace() {
            return Quartiles.of(millrace);
        }

        Quartiles openMpi() {
            return Quartiles.of(openMpi);
        }

        double ratio() {
            return millrace().median() / openMpi().median();
        }

        private String json() {
            return String.format(Locale.ROOT, "{\"millrace_ns\": %s, \"openmpi_ns\": %s, \"ratio\": %.4f}",
                    millrace().json(millrace), openMpi().json(openMpi), ratio());
        }
    }

    /**
     * Quartiles of the rounds, in nanoseconds.
     *
     * @param first  first quartile
     * @param median median
     * @param third  third quartile
     */
    record Quartiles(double first, double median, double third) {

        static Quartiles of(List<Double> values) {
            double[] sorted = values.stream().mapToDouble(Double::doubleValue).sorted().toArray();
            return new Quartiles(quantile(sorted, 0.25), quantile(sorted, 0.5), quantile(sorted, 0.75));
        }

        /** Returns a value between the two nearest values, by linear interpolation. */
        private static double quantile(double[] sorted, double share) {
            double position = share * (sorted.length - 1);
            int below = (int) position;
            int above = Math.min(below + 1, sorted.length - 1);
            return sorted[below] + (position - below) * (sorted[above] - sorted[below]);
        }

        @Override
        public String toString() {
            return String.format(Locale.ROOT, "%.1f [%.1f %.1f]", median / 1000, first / 1000, third / 1000);
        }

        private String json(List<Double> rounds) {
            return String.format(Locale.ROOT, "{\"median\": %.1f, \"q1\": %.1f, \"q3\": %.1f, \"rounds\": %s}", median,
                    first, third, rounds);
        }
    }

    private final long bytes;
    private final Pair outOfPlace = new Pair();
    private final Pair inPlace = new Pair();
    private long wrong;

    SizeComparison(long bytes) {
        this.bytes = bytes;
    }

    void addMillrace(Measurements.Line line) {
        outOfPlace.millrace.add(line.outOfPlace());
        inPlace.millrace.add(line.inPlace());
        wrong += line.wrong();
    }

    void addOpenMpi(Measurements.Line line) {
        outOfPlace.openMpi.add(line.outOfPlace());
        inPlace.openMpi.add(line.inPlace());
        wrong += line.wrong();
    }

    /** Fails if one side omitted a size, because there would be nothing to compare with. */
    void requireRounds(int rounds) {
        if (outOfPlace.millrace.size() != rounds || outOfPlace.openMpi.size() != rounds) {
            throw new IllegalStateException(bytes + " bytes: Millrace has " + outOfPlace.millrace.size()
                    + " results and Open MPI " + outOfPlace.openMpi.size() + ", not " + rounds + " each");
        }
    }

    long bytes() {
        return bytes;
    }

    long wrong() {
        return wrong;
    }

    Pair outOfPlace() {
        return outOfPlace;
    }

    Pair inPlace() {
        return inPlace;
    }

    String json() {
        return "{\"size\": " + bytes + ", \"out_of_place\": " + outOfPlace.json() + ", \"in_place\": " + inPlace.json()
                + ", \"wrong\": " + wrong + "}";
    }
}
