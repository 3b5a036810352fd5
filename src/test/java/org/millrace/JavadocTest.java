package org.millrace;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.sun.source.doctree.DocCommentTree;
import com.sun.source.doctree.ReferenceTree;
import com.sun.source.tree.ClassTree;
import com.sun.source.tree.CompilationUnitTree;
import com.sun.source.tree.MethodTree;
import com.sun.source.util.DocTreePath;
import com.sun.source.util.DocTreePathScanner;
import com.sun.source.util.DocTrees;
import com.sun.source.util.JavacTask;
import com.sun.source.util.TreePathScanner;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.lang.model.element.Element;
import javax.lang.model.element.ElementKind;
import javax.lang.model.element.ExecutableElement;
import javax.lang.model.element.Modifier;
import javax.lang.model.element.TypeElement;
import javax.lang.model.util.ElementFilter;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Javadoc of the exported packages: each method has a text, and each link to an overloaded method names one overload.
 */
@Tag("slow")
class JavadocTest {

    private static final Pattern EXPORTED = Pattern.compile("exports ([\\w.]+);");

    private static final Set<String> ambiguous = new TreeSet<>();
    private static final Set<String> withoutText = new TreeSet<>();

    @BeforeAll
    static void analyze() throws IOException {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        try (StandardJavaFileManager files = compiler.getStandardFileManager(null, null, null)) {
            JavacTask task = (JavacTask) compiler.getTask(null, files, _ -> {}, List.of("-proc:none"), null,
                    files.getJavaFileObjectsFromPaths(exportedSources()));
            Iterable<? extends CompilationUnitTree> units = task.parse();
            task.analyze();
            new Comments(task).scan(units, null);
        }
    }

    private static List<Path> exportedSources() throws IOException {
        List<Path> sources = new ArrayList<>();
        String module = Files.readString(Path.of("src", "main", "module", "module-info.java"));
        for (String name : EXPORTED.matcher(module).results().map(each -> each.group(1)).toList()) {
            try (Stream<Path> files = Files.list(Path.of("src", "main", "java").resolve(name.replace('.', '/')))) {
                files.filter(file -> file.toString().endsWith(".java")).forEach(sources::add);
            }
        }
        return sources;
    }

    @Test
    void everyLinkToAnOverloadedMethodNamesItsParameters() {
        assertEquals(Set.of(), ambiguous);
    }

    @Test
    void everyOverrideWhoseTextJavadocCannotInheritHasOne() {
        assertEquals(Set.of(), withoutText);
    }

    /** Visits each documented declaration. */
    private static final class Comments extends TreePathScanner<Void, Void> {

        private final JavacTask task;
        private final DocTrees trees;

        Comments(JavacTask task) {
            this.task = task;
            this.trees = DocTrees.instance(task);
        }

        @Override
        public Void visitClass(ClassTree node, Void none) {
            checkLinks();
            return super.visitClass(node, none);
        }

        @Override
        public Void visitMethod(MethodTree node, Void none) {
            checkLinks();
            ExecutableElement method = (ExecutableElement) trees.getElement(getCurrentPath());
            if (trees.getDocCommentTree(getCurrentPath()) == null && isExported(method)
                    && overridden(method).stream().noneMatch(Comments::isExported) && !overridden(method).isEmpty()) {
                withoutText.add(method.getEnclosingElement() + "." + method);
            }
            return null;
        }

        private void checkLinks() {
            DocCommentTree comment = trees.getDocCommentTree(getCurrentPath());
            if (comment == null) {
                return;
            }
            Element documented = trees.getElement(getCurrentPath());
            new DocTreePathScanner<Void, Void>() {

                @Override
                public Void visitReference(ReferenceTree reference, Void none) {
                    String text = reference.getSignature();
                    if (text.contains("#") && !text.contains("(")) {
                        Element target = trees.getElement(new DocTreePath(getCurrentPath(), reference));
                        if (target != null && target.getKind() == ElementKind.METHOD && isOverloaded(target)) {
                            ambiguous.add(
                                    documented.getEnclosingElement() + " " + documented.getSimpleName() + ": " + text);
                        }
                    }
                    return null;
                }
            }.scan(new DocTreePath(getCurrentPath(), comment), null);
        }

        /** Counts only methods of the declaring type, because the compiler searches that type before its supertypes. */
        private static boolean isOverloaded(Element method) {
            return ElementFilter.methodsIn(method.getEnclosingElement().getEnclosedElements())
                    .stream()
                    .filter(each -> each.getSimpleName().equals(method.getSimpleName()))
                    .count() > 1;
        }

        private List<ExecutableElement> overridden(ExecutableElement method) {
            TypeElement type = (TypeElement) method.getEnclosingElement();
            List<ExecutableElement> all = new ArrayList<>();
            for (TypeElement above : supertypes(type)) {
                for (ExecutableElement each : ElementFilter.methodsIn(above.getEnclosedElements())) {
                    if (task.getElements().overrides(method, each, type)) {
                        all.add(each);
                    }
                }
            }
            return all;
        }

        private List<TypeElement> supertypes(TypeElement type) {
            List<TypeElement> all = new ArrayList<>();
            for (var above : task.getTypes().directSupertypes(type.asType())) {
                TypeElement element = (TypeElement) task.getTypes().asElement(above);
                all.add(element);
                all.addAll(supertypes(element));
            }
            return all;
        }

        private static boolean isExported(Element element) {
            for (Element each = element; each.getKind() != ElementKind.PACKAGE; each = each.getEnclosingElement()) {
                if (!each.getModifiers().contains(Modifier.PUBLIC)
                        && !each.getModifiers().contains(Modifier.PROTECTED)) {
                    return false;
                }
            }
            return true;
        }
    }
}
