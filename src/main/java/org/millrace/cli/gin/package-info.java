/** {@code millrace gin}: patterns of GPU-initiated networking on the emulated device, measured and checked. */
package org.millrace.cli.gin;
