/* sim/scheduler/engine.cpp: the C++ of the project but for base/decimal.cpp; SimGrid's C interface lacks what we need
 * (no asynchronous flow between hosts, no callback, no platform but from XML).
 *
 * No actors: everything happens in callbacks of the engine's own loop. A flow is an S4U
 * Comm from a dummy host to itself, whose loopback route is the path: any set of links
 * at the price of one host, no routing. Timers are a resource model of ours: the engine asks
 * each model for its next date and jumps to the nearest. Written for SimGrid 3.32, guarded for
 * the names of later ones. */
#include "sim/scheduler/engine.h"

#include "base/arena.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <simgrid/kernel/resource/Model.hpp>
#include <simgrid/s4u.hpp>
#include <simgrid/version.h>
#include <string>
#include <type_traits>
#include <vector>

namespace s4u = simgrid::s4u;

namespace
{

constexpr double parts_per_byte = ENGINE_BYTE_PARTS;

engine_done_fn done_fn;
engine_ahead_fn ahead_fn;
void *done_context;

struct Timer {
    double date;
    uint64_t order;
    int64_t tag;
};

struct Later {
    bool operator()(const Timer &a, const Timer &b) const
    {
        return a.date > b.date || (a.date == b.date && a.order > b.order);
    }
};

class TimerModel : public simgrid::kernel::resource::Model
{
  public:
    std::vector<Timer> heap;
    uint64_t order = 0;
    std::vector<int64_t> fired;

    TimerModel() : Model("longhaul_timers")
    {
    }
    void add(double date, int64_t tag)
    {
        heap.push_back({date, order++, tag});
        std::push_heap(heap.begin(), heap.end(), Later());
    }
    double next_occurring_event(double now) override
    {
        if (ahead_fn != nullptr) {
            double flows = next_of_others(now);
            double next = flows < 0 ? HUGE_VAL : now + flows;
            while (ahead_fn(done_context, heap.empty() ? next : std::min(next, heap.front().date)))
                ;
        }
        return heap.empty() ? -1.0 : std::max(0.0, heap.front().date - now);
    }
    /* The tags are handed out later, when the engine has left its models. */
    void update_actions_state(double now, double) override
    {
        while (!heap.empty() && heap.front().date <= now) {
            fired.push_back(heap.front().tag);
            std::pop_heap(heap.begin(), heap.end(), Later());
            heap.pop_back();
        }
    }

  private:
    /* The engine asks them as well; a model that was just asked has its answer ready. */
    double next_of_others(double now)
    {
        double next = -1;
        for (auto *model : s4u::Engine::get_instance()->get_all_models()) {
            double delay = model == this ? -1 : model->next_occurring_event(now);
            if (delay >= 0 && (next < 0 || delay < next))
                next = delay;
        }
        return next;
    }
};

s4u::Engine *engine;
s4u::NetZone *zone;
std::shared_ptr<TimerModel> timers;
std::vector<s4u::Link *> links;
std::vector<s4u::Host *> paths;
std::vector<s4u::CommPtr> ended; /* released once the engine has left Activity::complete():
                                    dropping the last reference inside it is a use after free */
std::vector<int64_t> batch;
std::string fault; /* the first exception's words */

template <typename F> void guarded(F body) noexcept
{
    try {
        body();
    } catch (const std::exception &e) {
        if (fault.empty())
            fault = e.what();
    } catch (...) {
        if (fault.empty())
            fault = "an exception without words";
    }
}

void fire_timers()
{
    ended.clear();
    while (!timers->fired.empty()) {
        batch.swap(timers->fired);
        for (int64_t tag : batch)
            done_fn(done_context, tag);
        batch.clear();
    }
}

/* tag + 1 travels as the comm's user data; data 0 is not ours. */
void comm_ended(const s4u::Activity &activity)
{
    auto &comm = static_cast<s4u::Comm &>(const_cast<s4u::Activity &>(activity));
    void *data = comm.get_data<void>();
    if (data == nullptr)
        return;
    ended.emplace_back(&comm, false);
    done_fn(done_context, static_cast<int64_t>(reinterpret_cast<intptr_t>(data)) - 1);
}

void configure()
{
    /* Pure max-min sharing, exact dates: the default model scales latency by 13, bandwidth by
     * 0.97, and adds traffic in the other direction. Links have no latency, because CM02 would
     * share them in inverse proportion to it. */
    s4u::Engine::set_config("network/model:CM02");
    s4u::Engine::set_config("network/crosstraffic:no");
    /* The default merges events within 1 ns, always early: 1.6e-11 s per op of 1 us. */
#if SIMGRID_VERSION < 33300
    s4u::Engine::set_config("surf/precision:1e-12");
    s4u::Activity::on_completion_cb([](s4u::Activity const &a) { comm_ended(a); });
#else
    s4u::Engine::set_config("precision/timing:1e-12");
    s4u::Comm::on_completion_cb([](s4u::Comm const &a) { comm_ended(a); });
#endif
#if SIMGRID_VERSION < 33900
    zone = s4u::create_star_zone("root");
#else
    zone = engine->get_netzone_root()->add_netzone_star("root");
#endif
    timers = std::make_shared<TimerModel>();
    engine->add_model(timers);
    s4u::Engine::on_time_advance_cb([](double) { fire_timers(); });
}

} // namespace

void engine_init(engine_done_fn done, void *context)
{
    static char name[] = "longhaul", quiet[] = "--log=root.thres:error";
    static char *arguments[] = {name, quiet, nullptr};
    static int count = 2;
    done_fn = done;
    done_context = context;
    std::set_new_handler(heap_out);
    guarded([] {
        engine = new s4u::Engine(&count, arguments);
        configure();
    });
}

int engine_link(double bytes_per_s)
{
    guarded([=] {
        std::string name = "l" + std::to_string(links.size());
#if SIMGRID_VERSION < 33900
        auto *link = zone->create_link(name, bytes_per_s * parts_per_byte);
#else
        auto *link = zone->add_link(name, bytes_per_s * parts_per_byte);
#endif
        link->set_latency(0.0);
        link->seal();
        links.push_back(link);
    });
    return static_cast<int>(links.size()) - 1;
}

int engine_path(const int *ids, int count)
{
    guarded([=] {
        std::string name = "p" + std::to_string(paths.size());
        std::vector<s4u::LinkInRoute> route;
        for (int i = 0; i < count; i++)
            route.emplace_back(links.at(static_cast<size_t>(ids[i])));
#if SIMGRID_VERSION < 33900
        auto *host = zone->create_host(name, 1.0);
        host->seal();
        zone->add_route(host->get_netpoint(), host->get_netpoint(), nullptr, nullptr, route, false);
#else
        auto *host = zone->add_host(name, 1.0);
        host->seal();
        zone->add_route(host, host, route, false);
#endif
        paths.push_back(host);
    });
    return static_cast<int>(paths.size()) - 1;
}

void engine_seal(void)
{
    guarded([] { engine->seal_platform(); });
}

double engine_now_s(void)
{
    return s4u::Engine::get_clock();
}

void engine_timer(double date_s, int64_t tag)
{
    guarded([=] { timers->add(date_s, tag); });
}

void engine_run_ahead(engine_ahead_fn ahead)
{
    ahead_fn = ahead;
}

void engine_flow(int path, double bytes, int64_t tag)
{
    guarded([=] {
        auto comm = s4u::Comm::sendto_init();
        comm->set_data(reinterpret_cast<void *>(static_cast<intptr_t>(tag + 1)));
        /* A comm of 0 bytes never starts and never ends. */
        double parts = bytes * parts_per_byte;
        comm->set_payload_size(parts < 1 ? 1 : static_cast<uint64_t>(parts + 0.5));
        comm->add_ref(); /* given back through `ended` */
        auto *host = paths.at(static_cast<size_t>(path));
        comm->set_source(host);
        comm->set_destination(host); /* starts it */
    });
}

void engine_set_bandwidth(int link, double bytes_per_s)
{
    guarded(
        [=] { links.at(static_cast<size_t>(link))->set_bandwidth(bytes_per_s * parts_per_byte); });
}

const char *engine_run(void)
{
    guarded([] {
        if (fault.empty())
            engine->run();
        ended.clear();
    });
    return fault.empty() ? nullptr : fault.c_str();
}
