package org.millrace;

import static java.util.stream.Collectors.joining;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.tngtech.archunit.core.domain.Dependency;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.JavaMember;
import com.tngtech.archunit.core.domain.JavaModifier;
import com.tngtech.archunit.core.domain.JavaPackage;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.lang.EvaluationResult;
import com.tngtech.archunit.library.dependencies.SliceAssignment;
import com.tngtech.archunit.library.dependencies.SliceIdentifier;
import com.tngtech.archunit.library.dependencies.SlicesRuleDefinition;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.NullMarked;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Rules for dependencies between packages. Packages form groups, and each group has a level. */
class ArchitectureTest {

    private static final String ROOT = "org.millrace";

    /**
     * One line per group: its level, its name below {@code org.millrace}, and its packages. A package may use all
     * groups of lower levels. Within its own group, a package may use only the packages that precede it in the line. A
     * dot stands for the package with the group's own name.
     */
    // @formatter:off
    private static final String PLAN = """
            6 cli:              base, run, perf, gin, inspect, doctor, rehearsal, .
            5 engine:           .
            5 gpu:              .
            4 bootstrap:        .
            4 device:           ., gin
            4 transport:        .
            4 plugin:           host, loss, path, fallback, takeover, gin, .
            3 proxy:            spi, .
            3 collnet:          .
            3 gin:              .
            3 nccl:             .
            3 rehearsal:        .
            2 net:              ., connection, check, shm, socket, ucx, plugin, auto, link
            2 cuda:             ., driver
            1 abi:              ., gin, kernel
            1 agent:            .
            1 chronicle:        .
            1 element:          .
            1 failure:          .
            1 library:          .
            1 trace:            .
            0 file:             .
            0 ffi:              cudart, device, mailbox, nccl, plugin, ucx
            0 .:                .
            -1 foreign:         .
            -1 config:          .
            -1 operation:       .
            """;
    // @formatter:on

    /** Position of a package. Packages of a group are numbered in the order in which {@code PLAN} lists them. */
    private record Place(int level, String group, int index) {

        boolean mayUse(Place other) {
            return group.equals(other.group) ? other.index <= index : other.level < level;
        }
    }

    private static final Map<String, Place> PLACES = places();

    private static JavaClasses classes;

    @BeforeAll
    static void read() {
        classes = new ClassFileImporter().withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
                .importPackages(ROOT);
        assertTrue(classes.size() > 50, "too few classes found to judge: " + classes.size());
    }

    private static Map<String, Place> places() {
        Map<String, Place> places = new HashMap<>();
        for (String line : PLAN.replaceAll(",\\s+", ", ").lines().toList()) {
            String[] words = line.split("[ :,]+");
            String group = below(ROOT, words[1]);
            for (int index = 2; index < words.length; index++) {
                places.put(below(group, words[index]), new Place(Integer.parseInt(words[0]), group, index));
            }
        }
        return places;
    }

    private static String below(String parent, String name) {
        return name.equals(".") ? parent : parent + "." + name;
    }

    private static Stream<JavaPackage> packages() {
        return Stream
                .concat(Stream.of(classes.getPackage(ROOT)), classes.getPackage(ROOT).getSubpackagesInTree().stream())
                .filter(ours -> ours.getClasses()
                        .stream()
                        .anyMatch(one -> !one.getSimpleName().equals("package-info")));
    }

    private static boolean isGenerated(String packageName) {
        return packageName.startsWith(ROOT + ".ffi");
    }

    @Test
    void everyPackageHasAPlace() {
        Set<String> there = packages().map(JavaPackage::getName).collect(Collectors.toCollection(TreeSet::new));
        Set<String> without = new TreeSet<>(there);
        without.removeAll(PLACES.keySet());
        assertEquals(Set.of(), without, "packages that have no place in the plan");
        Set<String> gone = new TreeSet<>(PLACES.keySet());
        gone.removeAll(there);
        assertEquals(Set.of(), gone, "places of packages that are not there");
    }

    @Test
    void dependenciesPointDown() {
        Set<String> upwards = new TreeSet<>();
        for (JavaClass from : classes) {
            Place upper = PLACES.get(from.getPackageName());
            for (Dependency dependency : from.getDirectDependenciesFromSelf()) {
                Place lower = PLACES.get(dependency.getTargetClass().getBaseComponentType().getPackageName());
                if (upper != null && lower != null && !upper.mayUse(lower)) {
                    upwards.add(dependency.getDescription());
                }
            }
        }
        assertTrue(upwards.isEmpty(), () -> upwards.size() + " dependencies on a higher level, or on a later package:\n"
                + String.join("\n", upwards));
    }

    /** Packages have no dependency cycles, neither within a group nor between a parent package and its child. */
    @Test
    void packagesHaveNoCycles() {
        EvaluationResult cycles = SlicesRuleDefinition.slices().assignedFrom(new SliceAssignment() {
            @Override
            public SliceIdentifier getIdentifierOf(JavaClass javaClass) {
                return javaClass.getPackageName().startsWith(ROOT) ? SliceIdentifier.of(javaClass.getPackageName())
                        : SliceIdentifier.ignore();
            }

            @Override
            public String getDescription() {
                return "packages of " + ROOT;
            }
        }).namingSlices("$1").should().beFreeOfCycles().evaluate(classes);
        assertTrue(!cycles.hasViolation(), () -> cycles.getFailureReport().toString());
    }

    @Test
    void everyPackageSaysWhatItIsAndThatNothingIsNullUnlessAnnotated() {
        List<String> silent = packages().filter(ours -> !isGenerated(ours.getName()))
                .filter(ours -> !ours.isAnnotatedWith(NullMarked.class))
                .map(JavaPackage::getName)
                .sorted()
                .toList();
        assertEquals(List.of(), silent, "packages without a package-info.java with @NullMarked");
    }

    /** Public members of an exported package mention only public types, so that users can name them. */
    @Test
    void usersCanNameWhatPublicMembersMention() throws IOException {
        Set<String> exported = Pattern.compile("exports ([\\w.]+);")
                .matcher(Files.readString(Path.of("src/main/module/module-info.java")))
                .results()
                .map(found -> found.group(1))
                .collect(Collectors.toSet());
        assertTrue(exported.contains(ROOT), "exported: " + exported);
        Set<String> hidden = new TreeSet<>();
        for (JavaClass javaClass : classes) {
            if (exported.contains(javaClass.getPackageName()) && isPublic(javaClass)) {
                for (JavaMember member : javaClass.getMembers()) {
                    if (!member.getModifiers().contains(JavaModifier.PUBLIC)) {
                        continue;
                    }
                    member.getAllInvolvedRawTypes()
                            .stream()
                            .map(JavaClass::getBaseComponentType)
                            .filter(type -> type.getPackageName().startsWith(ROOT) && !isPublic(type))
                            .forEach(type -> hidden.add(member.getFullName() + ": " + type.getSimpleName()));
                }
            }
        }
        assertEquals("", String.join("\n", hidden), "types that are not public");
    }

    /**
     * Some types are used only by implementations of communicators and devices. Signatures in the root package do not
     * contain such types. Exceptions of the root package have no methods that create a copy of the exception.
     */
    @Test
    void theRootPackageHasNoTypesForImplementationsOnly() {
        Set<String> seen = classes.stream()
                .filter(javaClass -> javaClass.getPackageName().equals(ROOT) && isPublic(javaClass))
                .flatMap(javaClass -> javaClass.getMembers().stream())
                .filter(member -> member.getModifiers().contains(JavaModifier.PUBLIC)
                        || member.getModifiers().contains(JavaModifier.PROTECTED))
                .flatMap(member -> member.getAllInvolvedRawTypes().stream())
                .map(type -> type.getBaseComponentType().getPackageName())
                .filter(name -> name.startsWith(ROOT))
                .collect(Collectors.toCollection(TreeSet::new));
        assertEquals(Set.of(ROOT), seen, "packages of the types in signatures");
        Set<String> ofExceptions = classes.stream()
                .filter(javaClass -> javaClass.getPackageName().equals(ROOT)
                        && javaClass.isAssignableTo(MillraceException.class))
                .flatMap(javaClass -> javaClass.getMethods().stream())
                .filter(method -> !method.getModifiers().contains(JavaModifier.PRIVATE))
                .map(JavaMember::getName)
                .collect(Collectors.toCollection(TreeSet::new));
        assertEquals(Set.of("completion", "operation", "peer", "rank"), ofExceptions, "methods of exceptions");
    }

    private static boolean isPublic(JavaClass javaClass) {
        return javaClass.getModifiers().contains(JavaModifier.PUBLIC)
                && javaClass.getEnclosingClass().map(ArchitectureTest::isPublic).orElse(true);
    }

    /** No two classes have the same simple name in different packages. */
    @Test
    void noSimpleNameStandsTwice() {
        Map<String, Set<String>> owners = new TreeMap<>();
        for (JavaClass javaClass : classes) {
            if (javaClass.isTopLevelClass() && !isGenerated(javaClass.getPackageName())
                    && !javaClass.getSimpleName().equals("package-info")) {
                owners.computeIfAbsent(javaClass.getSimpleName(), name -> new TreeSet<>())
                        .add(javaClass.getPackageName());
            }
        }
        String twice = owners.entrySet()
                .stream()
                .filter(owner -> owner.getValue().size() > 1)
                .map(Map.Entry::toString)
                .collect(joining("\n"));
        assertEquals("", twice);
    }

    /**
     * Programs and the plugin read settings at their entry points. Packages of lower levels receive the values as
     * options.
     */
    @Test
    void settingsAreReadWhereAPartsOptionsAreMade() {
        Set<String> readers = new TreeSet<>();
        for (JavaClass javaClass : classes) {
            String name = javaClass.getPackageName();
            boolean begins = Stream.of("config", "cli", "plugin", "gpu", "library")
                    .anyMatch(each -> (name + ".").startsWith(ROOT + "." + each + ".")) || name.equals(ROOT);
            if (!begins && javaClass.getMethodCallsFromSelf()
                    .stream()
                    .anyMatch(call -> call.getTargetOwner().getName().equals(ROOT + ".config.Configuration"))) {
                readers.add(javaClass.getSimpleName());
            }
        }
        assertEquals(Set.of("Agreement", "AlgorithmChoice", "CollNet", "EngineOptions", "EngineProvider", "EngineTrace",
                "Fault", "GinRank", "JoinOptions", "LinkTable", "NetworkOptions", "Networks", "ProtocolChoice",
                "Recording", "SharedMemoryOptions", "TlsIdentity", "TransferOptions"), readers);
    }

    /**
     * Only the package {@code chronicle} uses types of Chronicle Bytes, because these types may be absent at run time,
     * or when a user compiles a program.
     */
    @Test
    void onlyThePackageChronicleUsesChronicleBytes() {
        Set<String> users = classes.stream()
                .filter(javaClass -> javaClass.getDirectDependenciesFromSelf()
                        .stream()
                        .anyMatch(dependency -> dependency.getTargetClass().getName().startsWith("net.openhft.")))
                .map(JavaClass::getPackageName)
                .collect(Collectors.toCollection(TreeSet::new));
        assertEquals(Set.of(ROOT + ".chronicle"), users);
    }

    @Test
    void unsafeIsNotUsed() {
        List<String> users = classes.stream()
                .filter(javaClass -> javaClass.getDirectDependenciesFromSelf()
                        .stream()
                        .anyMatch(dependency -> dependency.getTargetClass().getName().equals("sun.misc.Unsafe")))
                .map(JavaClass::getName)
                .toList();
        assertEquals(List.of(), users, "users of sun.misc.Unsafe");
    }

    /** If a file does not declare a type with the file's name, Maven compiles all sources again in each run. */
    @Test
    void everyFileDeclaresTheTypeOfItsName() throws IOException {
        List<String> others = new ArrayList<>();
        for (Path root : List.of(Path.of("src", "main", "java"), Path.of("src", "test", "java"),
                Path.of("src", "examples", "java"))) {
            try (Stream<Path> files = Files.walk(root)) {
                for (Path file : (Iterable<Path>) files.filter(each -> each.toString().endsWith(".java"))::iterator) {
                    String name = file.getFileName().toString().replace(".java", "");
                    if (!name.equals("package-info")
                            && !Pattern.compile("(?m)^[\\w@ -]*\\b(class|interface|enum|record) " + name + "\\b")
                                    .matcher(Files.readString(file))
                                    .find()) {
                        others.add(file.toString());
                    }
                }
            }
        }
        assertEquals(List.of(), others);
    }

    /**
     * The tests with the tag {@code root} run as root in {@code .ci/run}, and all others run as an ordinary user. A
     * test that needs root and lacks the tag would therefore be skipped in every run. This check finds such a test.
     */
    @Test
    void testsThatNeedRootHaveTheTag() throws IOException {
        Pattern needsRoot = Pattern.compile("[.]assumePossible\\(\\)|User[.]ID == 0|TestHost[.]|\"(unshare|mount)\"");
        List<String> untagged = new ArrayList<>();
        try (Stream<Path> files = Files.walk(Path.of("src", "test", "java"))) {
            for (Path file : (Iterable<Path>) files.filter(each -> each.toString().endsWith("Test.java"))::iterator) {
                String source = Files.readString(file);
                if (needsRoot.matcher(source).find() && !source.contains("@Tag(\"root\")")) {
                    untagged.add(file.toString());
                }
            }
        }
        assertEquals(List.of(), untagged);
    }
}
