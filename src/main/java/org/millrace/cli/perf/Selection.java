package org.millrace.cli.perf;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.function.Predicate;
import org.millrace.DataType;
import org.millrace.Operation;
import org.millrace.cli.check.Reduction;
import org.millrace.config.NearestName;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** Arguments that are names: one, or, of types and reductions, several with commas between or {@code all}. */
final class Selection {

    private Selection() {}

    record Types(List<DataType> values) {
    }

    record Reductions(List<Reduction> values) {
    }

    /** Types by NCCL's name (float) or ours (float32). */
    static final class TypesConverter implements ITypeConverter<Types> {
        @Override
        public Types convert(String text) {
            List<String> labels = Arrays.stream(DataType.values()).map(DataType::label).toList();
            return new Types(select(text, List.of(DataType.values()), labels,
                    name -> type -> type.label().equalsIgnoreCase(name) || type.name().equalsIgnoreCase(name)));
        }
    }

    static final class ReductionsConverter implements ITypeConverter<Reductions> {
        @Override
        public Reductions convert(String text) {
            List<String> labels = Arrays.stream(Reduction.values()).map(Reduction::toString).toList();
            return new Reductions(select(text, List.of(Reduction.values()), labels,
                    name -> reduction -> reduction.name().equalsIgnoreCase(name)));
        }
    }

    static final class Collectives implements Iterable<String> {
        @Override
        public Iterator<String> iterator() {
            return labels().iterator();
        }
    }

    private static List<String> labels() {
        return Arrays.stream(Operation.values()).map(Operation::label).toList();
    }

    private static String unknown(String name, List<String> known, String choice) {
        return "there is no '" + name + "'; "
                + NearestName.hint(name, known, "allowed: " + choice + String.join(", ", known));
    }

    static final class CollectiveConverter implements ITypeConverter<Operation> {
        @Override
        public Operation convert(String text) {
            return Arrays.stream(Operation.values())
                    .filter(operation -> operation.label().equalsIgnoreCase(text))
                    .findFirst()
                    .orElseThrow(() -> new TypeConversionException(unknown(text, labels(), "")));
        }
    }

    private interface Match<T> {
        Predicate<T> of(String name);
    }

    private static <T> List<T> select(String text, List<T> all, List<String> labels, Match<T> match) {
        if (text.equalsIgnoreCase("all")) {
            return all;
        }
        List<T> selected = new ArrayList<>();
        for (String name : text.split(",")) {
            selected.add(all.stream()
                    .filter(match.of(name.strip()))
                    .findFirst()
                    .orElseThrow(() -> new TypeConversionException(
                            unknown(name.strip(), labels, "all, or one or more of "))));
        }
        return selected;
    }
}
