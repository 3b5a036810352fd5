package org.millrace;

import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.tngtech.archunit.core.domain.Dependency;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The house: a package uses only packages on floors below its own. */
class ArchitectureTest {

    /** Package prefixes by floor; the longest prefix counts. */
    private static final Map<String, Integer> FLOORS = Map.ofEntries(Map.entry("org.millrace.ffi", 0),
            Map.entry("org.millrace", 0), // the public vocabulary: depends on nothing of ours, implementations find it
            Map.entry("org.millrace.abi", 1), Map.entry("org.millrace.agent", 1), Map.entry("org.millrace.config", 1),
            Map.entry("org.millrace.element", 1), Map.entry("org.millrace.cuda", 2), Map.entry("org.millrace.nccl", 3), // its
                                                                                                                        // streams
                                                                                                                        // and
                                                                                                                        // memory
                                                                                                                        // are
                                                                                                                        // those
                                                                                                                        // of
                                                                                                                        // cuda
            Map.entry("org.millrace.net", 2), Map.entry("org.millrace.proxy", 3), Map.entry("org.millrace.gin", 3),
            Map.entry("org.millrace.device", 4), Map.entry("org.millrace.transport", 4), // proxies and networks on one
                                                                                         // side, connections for a
                                                                                         // device on the other
            Map.entry("org.millrace.plugin", 4), Map.entry("org.millrace.engine.bootstrap", 4), // how ranks meet,
                                                                                                // whatever runs their
                                                                                                // operations
            Map.entry("org.millrace.engine", 5), Map.entry("org.millrace.gpu", 5), Map.entry("org.millrace.cli", 7));

    private static JavaClasses classes;

    @BeforeAll
    static void read() {
        classes = new ClassFileImporter().withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
                .importPackages("org.millrace");
        assertTrue(classes.size() > 50, "too few classes found to judge: " + classes.size());
    }

    private static String room(JavaClass javaClass) {
        String name = javaClass.getPackageName();
        while (!FLOORS.containsKey(name)) {
            assertTrue(name.startsWith("org.millrace."), javaClass + " has no floor");
            name = name.substring(0, name.lastIndexOf('.'));
        }
        return name;
    }

    @Test
    void everyPackageHasAFloorOfItsOwn() {
        TreeSet<String> rooms = new TreeSet<>();
        for (JavaClass javaClass : classes) {
            String top = javaClass.getPackageName().replaceFirst("^(org\\.millrace(\\.[a-z0-9]+)?).*", "$1");
            rooms.add(top);
        }
        rooms.removeAll(FLOORS.keySet());
        assertTrue(rooms.isEmpty(), "packages without a floor: " + rooms);
    }

    @Test
    void dependenciesPointDown() {
        List<String> upwards = new ArrayList<>();
        for (JavaClass from : classes) {
            for (Dependency dependency : from.getDirectDependenciesFromSelf()) {
                JavaClass to = dependency.getTargetClass().getBaseComponentType();
                if (!to.getPackageName().startsWith("org.millrace")) {
                    continue;
                }
                String lower = room(to);
                String upper = room(from);
                if (!upper.equals(lower) && FLOORS.get(upper) <= FLOORS.get(lower)) {
                    upwards.add(from.getName() + " -> " + to.getName());
                }
            }
        }
        assertTrue(upwards.isEmpty(), "dependencies that do not point to a lower floor: " + upwards);
    }

    @Test
    void packagesHaveNoCycles() {
        slices().matching("org.millrace.(*)..").should().beFreeOfCycles().check(classes);
    }

    @Test
    void unsafeIsNotUsed() {
        for (JavaClass javaClass : classes) {
            assertFalse(
                    javaClass.getDirectDependenciesFromSelf()
                            .stream()
                            .anyMatch(d -> d.getTargetClass().getName().equals("sun.misc.Unsafe")),
                    javaClass + " uses sun.misc.Unsafe");
        }
    }
}
