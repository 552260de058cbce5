package bench;

import com.typesafe.config.ConfigFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.pekko.actor.AbstractActor;
import org.apache.pekko.actor.ActorRef;
import org.apache.pekko.actor.ActorSystem;
import org.apache.pekko.actor.Address;
import org.apache.pekko.actor.ClassicActorSystemProvider;
import org.apache.pekko.actor.PoisonPill;
import org.apache.pekko.actor.Props;
import org.apache.pekko.cluster.sharding.ClusterSharding;
import org.apache.pekko.cluster.sharding.ClusterShardingSettings;
import org.apache.pekko.cluster.sharding.external.ExternalShardAllocation;
import org.apache.pekko.cluster.sharding.external.ExternalShardAllocationStrategy;
import org.apache.pekko.cluster.sharding.external.javadsl.ExternalShardAllocationClient;
import org.apache.pekko.pattern.Patterns;

/**
 * A second type of entities, which has one shard. It moves between the members 1 and 2, and member 0
 * sends requests; type moving of lab/bench/peers does the same, and says what is measured. An entity
 * answers with the number of its member. The coordinator looks every second for shards to move, by
 * default every ten; all other settings are those of Shards. Lost requests are counted.
 */
final class Moves {
  static final String TYPE = "move";
  static final Duration ANSWER_LIMIT = Duration.ofSeconds(5);

  final ActorRef region;
  final ExternalShardAllocationClient client;
  final String[] ports;

  Moves(ActorSystem system, int index, String[] ports) {
    this.ports = ports;
    ClusterShardingSettings settings =
        ClusterShardingSettings.create(
            ConfigFactory.parseString("rebalance-interval = 1s")
                .withFallback(system.settings().config().getConfig("pekko.cluster.sharding")));
    region =
        ClusterSharding.get(system)
            .start(
                TYPE,
                Props.create(Placed.class, (long) index),
                settings,
                new OneShard(),
                ExternalShardAllocationStrategy.create(system, TYPE, Duration.ofSeconds(5)),
                PoisonPill.getInstance());
    client = ExternalShardAllocation.get((ClassicActorSystemProvider) system).getClient(TYPE);
  }

  static final class OneShard extends Shards.Extractor {
    @Override
    public String shardId(Object message) {
      return "0";
    }
  }

  static final class Placed extends AbstractActor {
    final long member;

    Placed(long member) {
      this.member = member;
    }

    @Override
    public Receive createReceive() {
      return receiveBuilder().match(String.class, m -> getSender().tell(member, getSelf())).build();
    }
  }

  CompletableFuture<Object> ask(int entity, Duration limit) {
    return Patterns.ask(region, String.format("?m%07d", entity), limit).toCompletableFuture();
  }

  /** Moves the shard n times, with as many entities, and returns the times of each move. */
  String times(int n, int entities, long ms) throws Exception {
    long home = (Long) ask(0, Member.LIMIT).get();
    if (home == 0) { // from here to a member that sends no requests
      home = 1;
      once(entities, 0, home, 0);
    }
    StringBuilder answer = new StringBuilder("done n=" + n);
    for (int i = 0; i < n; i++) {
      long[] times = once(entities, home, Member.MEMBERS - home, ms);
      home = Member.MEMBERS - home;
      answer.append(" still").append(i).append('=').append(times[0]);
      answer.append(" dark").append(i).append('=').append(times[1]);
      answer.append(" lost").append(i).append('=').append(times[2]);
    }
    return answer.toString();
  }

  /**
   * Moves the shard once. Returns the longest time without an answer before the move, and during it,
   * and the number of lost requests.
   */
  long[] once(int entities, long from, long to, long ms) throws Exception {
    List<CompletableFuture<Object>> running = new ArrayList<>();
    for (int i = 0; i < entities; i++) {
      running.add(ask(i, Member.LIMIT));
    }
    for (CompletableFuture<Object> answer : running) {
      if ((Long) answer.get() != from) {
        throw new IllegalStateException("not all entities are at member " + from);
      }
    }
    long around = TimeUnit.MILLISECONDS.toNanos(ms);
    Asking asking = new Asking(to);
    asking.start();
    Thread.sleep(2 * ms);
    long begin = System.nanoTime();
    Address member = new Address("pekko", "peers", "127.0.0.1", Integer.parseInt(ports[(int) to]));
    client.setShardLocation("0", member).toCompletableFuture().get(Member.LIMIT.toSeconds(), TimeUnit.SECONDS);
    boolean arrived = asking.arrived.await(Member.LIMIT.toSeconds(), TimeUnit.SECONDS);
    Thread.sleep(ms);
    asking.end();
    if (!arrived) {
      throw new IllegalStateException("a move to member " + to + ": the new home does not answer");
    }
    return new long[] {
      longest(asking.answers, begin - 2 * around, begin),
      longest(asking.answers, asking.there - around, asking.there + around),
      asking.lost
    };
  }

  /**
   * The longest time between two consecutive answers of which the later came from begin to end.
   * Times of System.nanoTime.
   */
  static long longest(List<Long> answers, long begin, long end) {
    long[] sorted = answers.stream().mapToLong(Long::longValue).sorted().toArray();
    long most = 0;
    for (int i = 1; i < sorted.length; i++) {
      if (sorted[i] >= begin && sorted[i] <= end) {
        most = Math.max(most, sorted[i] - sorted[i - 1]);
      }
    }
    return most;
  }

  /** Requests to an entity every millisecond, without waiting for earlier answers, until end. */
  final class Asking extends Thread {
    final long to;
    final CountDownLatch arrived = new CountDownLatch(1);
    final List<CompletableFuture<Object>> requests = new ArrayList<>(); // of this thread
    volatile boolean stop;

    // Guarded by answers.
    final List<Long> answers = new ArrayList<>(List.of(System.nanoTime())); // and the start
    long there; // the first answer of the new home
    boolean moved;
    int lost;

    Asking(long to) {
      this.to = to;
    }

    @Override
    public void run() {
      long next = System.nanoTime();
      while (!stop) {
        requests.add(ask(0, ANSWER_LIMIT).whenComplete((answer, failure) -> answered(System.nanoTime(), answer)));
        next = Math.max(next + 1_000_000, System.nanoTime());
        for (long left = next - System.nanoTime(); left > 0; left = next - System.nanoTime()) {
          LockSupport.parkNanos(left);
        }
      }
    }

    void answered(long at, Object answer) {
      synchronized (answers) {
        if (answer == null) {
          lost++;
          return;
        }
        answers.add(at);
        if ((Long) answer == to && (!moved || at < there)) {
          there = at;
          moved = true;
          arrived.countDown();
        }
      }
    }

    /** Waits for all answers. */
    void end() throws InterruptedException {
      stop = true;
      join();
      for (CompletableFuture<Object> request : requests) {
        request.handle((answer, failure) -> answer).join();
      }
    }
  }
}
