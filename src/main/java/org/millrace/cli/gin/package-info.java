/**
 * {@code millrace gin}: patterns of GPU-initiated networking, measured and checked: here on the emulated device, in
 * {@code gin.cuda} on GPUs.
 */
@NullMarked
package org.millrace.cli.gin;

import org.jspecify.annotations.NullMarked;
