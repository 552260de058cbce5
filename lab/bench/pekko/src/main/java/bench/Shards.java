package bench;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;
import org.apache.pekko.actor.AbstractActor;
import org.apache.pekko.actor.ActorRef;
import org.apache.pekko.actor.ActorSystem;
import org.apache.pekko.actor.Props;
import org.apache.pekko.cluster.sharding.ClusterSharding;
import org.apache.pekko.cluster.sharding.ClusterShardingSettings;
import org.apache.pekko.cluster.sharding.ShardRegion;
import org.apache.pekko.pattern.Patterns;

/**
 * Entities of Pekko's Cluster Sharding. It reads the same commands as the members of lab/bench/peers
 * with -sharding. A message is the id of its entity, a string; with a question mark in front the
 * entity answers with the number of its messages. So messages and answers have serializers of
 * Pekko's own. Passivation is off, entities are not remembered.
 */
final class Shards {
  static final int SHARDS = 99;

  final ActorSystem system;
  final ActorRef region;
  final Moves moves;
  long started;

  Shards(ActorSystem system, int index, String[] ports) {
    this.system = system;
    this.moves = new Moves(system, index, ports);
    this.region =
        ClusterSharding.get(system)
            .start("load", Props.create(Entity.class), ClusterShardingSettings.create(system), new Extractor());
  }

  static class Extractor implements ShardRegion.MessageExtractor {
    @Override
    public String entityId(Object message) {
      String text = (String) message;
      return text.charAt(0) == '?' ? text.substring(1) : text;
    }

    @Override
    public Object entityMessage(Object message) {
      return message;
    }

    @Override
    public String shardId(Object message) {
      return shardOf(entityId(message));
    }
  }

  static String shardOf(String id) {
    return Integer.toString(Math.floorMod(id.hashCode(), SHARDS));
  }

  static final class Entity extends AbstractActor {
    long count;

    @Override
    public Receive createReceive() {
      return receiveBuilder()
          .match(
              String.class,
              m -> {
                count++;
                if (m.charAt(0) == '?') {
                  getSender().tell(count, getSelf());
                }
              })
          .build();
    }
  }

  void obey(BlockingQueue<String> commands) throws Exception {
    probe();
    System.out.println("@ ready");
    while (true) {
      String line = commands.take();
      String answer;
      try {
        answer = obey(line);
      } catch (Exception e) {
        answer = "failed " + e.toString().replace('\n', ';');
      }
      System.out.println("@ " + answer);
    }
  }

  String obey(String line) throws Exception {
    if (line.equals("heap")) {
      return Member.heap();
    }
    if (line.equals("probe")) {
      return "there at=" + probe();
    }
    Map<String, String> words = Member.words(line);
    boolean local = words.get("place").equals("local");
    int n = Integer.parseInt(words.get("n"));
    int callers = Integer.parseInt(words.get("callers"));
    long ms = Long.parseLong(words.get("ms"));
    switch (words.get("op")) {
      case "tell":
        return tell(ids("e", local, Integer.parseInt(words.get("entities"))), n, ms);
      case "request":
        return request(ids("e", local, Integer.parseInt(words.get("entities"))), 0, callers, ms);
      case "start":
        return request(ids("s" + started++ + "-", local, n), n, callers, 0);
      case "move":
        return moves.times(n, Integer.parseInt(words.get("entities")), ms);
      default:
        throw new IllegalArgumentException("no such command: " + line);
    }
  }

  /** Ids of entities here, or of entities at other members. */
  String[] ids(String prefix, boolean local, int n) throws Exception {
    ShardRegion.CurrentShardRegionState state =
        (ShardRegion.CurrentShardRegionState)
            Patterns.ask(region, ShardRegion.getShardRegionStateInstance(), Member.LIMIT).toCompletableFuture().get();
    Set<String> here = state.getShards().stream().map(ShardRegion.ShardState::shardId).collect(Collectors.toSet());
    String[] ids = new String[n];
    int found = 0;
    for (int i = 0; found < n; i++) {
      String id = String.format("%s%07d", prefix, i);
      if (here.contains(shardOf(id)) == local) {
        ids[found++] = id;
      }
    }
    return ids;
  }

  CompletableFuture<Object> ask(String id, Duration limit) {
    return Patterns.ask(region, "?" + id, limit).toCompletableFuture();
  }

  /** Waits until an entity of each shard has answered, and returns the Unix time in nanoseconds. */
  long probe() throws Exception {
    List<String> left = new ArrayList<>();
    for (int shard = 0, i = 0; shard < SHARDS; i++) {
      if (shardOf("p" + i).equals(Integer.toString(shard))) {
        left.add("p" + i);
        shard++;
      }
    }
    while (!left.isEmpty()) {
      List<CompletableFuture<Object>> answers = new ArrayList<>();
      for (String id : left) {
        answers.add(ask(id, Duration.ofMillis(200)));
      }
      List<String> still = new ArrayList<>();
      for (int i = 0; i < answers.size(); i++) {
        try {
          answers.get(i).get();
        } catch (java.util.concurrent.ExecutionException e) {
          still.add(left.get(i));
        }
      }
      left = still;
    }
    return Member.unixNanos();
  }

  static final int WINDOW = 1000;

  /**
   * Tells n messages to entities in turn, or as many as it can in the time ms if n is 0. It ends when
   * each entity has handled all of them.
   */
  String tell(String[] ids, int n, long ms) throws Exception {
    Semaphore windows = new Semaphore(2);
    long before = counted(ids);
    long begin = System.nanoTime();
    int told = 0;
    for (; n > 0 ? told < n : told % WINDOW != 0 || System.nanoTime() - begin < ms * 1_000_000; told++) {
      if (told % WINDOW == 0) {
        windows.acquire();
        ask(ids[told / WINDOW % ids.length], Member.LIMIT).whenComplete((answer, failure) -> windows.release());
      } else {
        region.tell(ids[told % ids.length], ActorRef.noSender());
      }
    }
    windows.acquire(2); // until all requests are answered
    long after = counted(ids);
    long took = System.nanoTime() - begin;
    if (after - before != told + ids.length) {
      throw new IllegalStateException("of " + told + " messages " + (after - before - ids.length) + " were handled");
    }
    return "done n=" + told + " ns=" + took + " p50=0";
  }

  /** Asks each entity for the number of its messages, this one included, and returns the sum. */
  long counted(String[] ids) throws Exception {
    List<CompletableFuture<Object>> answers = new ArrayList<>();
    for (String id : ids) {
      answers.add(ask(id, Member.LIMIT));
    }
    long sum = 0;
    for (CompletableFuture<Object> answer : answers) {
      sum += (Long) answer.get();
    }
    return sum;
  }

  /** Requests of actors to entities in turn, each one after the previous answer. */
  String request(String[] ids, int n, int callers, long ms) throws Exception {
    Member.Load load = new Member.Load(new AtomicLong(), n, callers);
    long begin = System.nanoTime();
    for (int i = 0; i < callers; i++) {
      system.actorOf(Props.create(Caller.class, () -> new Caller(load, region, ids)));
    }
    if (n == 0) {
      Thread.sleep(ms);
      load.stop = true;
    }
    if (!load.ended.await(3 * Member.LIMIT.toSeconds(), TimeUnit.SECONDS)) {
      throw new IllegalStateException("callers have not ended: " + load.done + " are answered");
    }
    return "done n=" + load.done + " ns=" + (System.nanoTime() - begin) + " p50=" + load.median();
  }

  static final class Caller extends AbstractActor {
    final Member.Load load;
    final ActorRef region;
    final String[] ids;
    long done;
    long sent;

    Caller(Member.Load load, ActorRef region, String[] ids) {
      this.load = load;
      this.region = region;
      this.ids = ids;
    }

    @Override
    public void preStart() {
      send();
    }

    @Override
    public Receive createReceive() {
      return receiveBuilder()
          .match(
              Long.class,
              m -> {
                done++;
                if (load.took != null && load.measured < load.took.length) {
                  load.took[load.measured++] = System.nanoTime() - sent;
                }
                send();
              })
          .build();
    }

    void send() {
      long i = load.take();
      if (i < 0) {
        load.done.addAndGet(done);
        load.ended.countDown();
        getContext().stop(getSelf());
        return;
      }
      if (load.took != null) {
        sent = System.nanoTime();
      }
      region.tell("?" + ids[(int) (i % ids.length)], getSelf());
    }
  }
}
