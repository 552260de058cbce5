package bench;

import java.util.concurrent.TimeUnit;
import org.apache.pekko.cluster.UniqueAddress;
import org.apache.pekko.cluster.ddata.VersionVector;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/** Version vectors of one to five nodes; BenchmarkPeers_VersionVector of package crdt has the same cases. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class Vectors {
  @Param({"1", "2", "5"})
  int size;

  VersionVector base;
  VersionVector same;
  VersionVector left;
  VersionVector right;
  VersionVector one;

  static UniqueAddress node(int i) {
    return ORSetMerge.NODES[i % 5].uniqueAddress();
  }

  @Setup
  public void fill() {
    base = filled();
    same = filled();
    left = base.increment(node(size));
    right = base.increment(node(size + 1));
    one = VersionVector.create().increment(node(0));
  }

  VersionVector filled() {
    VersionVector v = VersionVector.create();
    for (int n = 0; n < size; n++) {
      v = v.increment(node(n));
    }
    return v;
  }

  @Benchmark
  public VersionVector increment() {
    return base.increment(node(0));
  }

  @Benchmark
  public boolean compareSame() {
    return base.$eq$eq(same);
  }

  @Benchmark
  public boolean compareAfter() {
    return left.$greater(one);
  }

  @Benchmark
  public VersionVector merge() {
    return base.merge(left);
  }

  @Benchmark
  public VersionVector mergeConcurrent() {
    return left.merge(right);
  }
}
