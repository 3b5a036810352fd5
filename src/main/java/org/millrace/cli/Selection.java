package org.millrace.cli;

import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.function.Function;
import java.util.stream.Stream;
import org.millrace.DataType;
import org.millrace.Operation;
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
            return new Types(several(text, DataType.values(), DataType::label));
        }
    }

    static final class ReductionsConverter implements ITypeConverter<Reductions> {
        @Override
        public Reductions convert(String text) {
            return new Reductions(several(text, Reduction.values(), Reduction::toString));
        }
    }

    static final class CollectiveConverter implements ITypeConverter<Operation> {
        @Override
        public Operation convert(String text) {
            return one(text, Operation.values(), Operation::label, "");
        }
    }

    static final class Collectives implements Iterable<String> {
        @Override
        public Iterator<String> iterator() {
            return Arrays.stream(Operation.values()).map(Operation::label).iterator();
        }
    }

    private static <T extends Enum<T>> List<T> several(String text, T[] all, Function<T, String> label) {
        return text.equalsIgnoreCase("all") ? List.of(all)
                : Stream.of(text.split(","))
                        .map(name -> one(name.strip(), all, label, "all, or one or more of "))
                        .toList();
    }

    private static <T extends Enum<T>> T one(String name, T[] all, Function<T, String> label, String choice) {
        List<String> labels = Arrays.stream(all).map(label).toList();
        return Arrays.stream(all)
                .filter(each -> label.apply(each).equalsIgnoreCase(name) || each.name().equalsIgnoreCase(name))
                .findFirst()
                .orElseThrow(() -> new TypeConversionException("there is no '" + name + "'; "
                        + NearestName.hint(name, labels, "allowed: " + choice + String.join(", ", labels))));
    }
}
