// Numbered points: how risky against how useful. The table beside it says the same in words.
export default {
  template: `
    <svg class="points" :viewBox="'0 0 ' + W + ' ' + H" role="group" :aria-label="label">
      <rect v-if="band" :x="X(band[0]) - 11" :y="top" :width="X(band[1]) - X(band[0]) + 22" :height="H - top - 30" rx="4" fill="var(--ok-soft)"/>
      <g v-for="tick in ticksY" :key="'y' + tick"><path class="axis" :d="'M36 ' + Y(tick) + 'H' + (W - 6)"/><text class="axl" x="28" :y="Y(tick) + 4" text-anchor="end">{{ text_of(tick) }}</text></g>
      <text v-for="tick in ticksX" :key="'x' + tick" class="axl" :x="X(tick)" :y="H - 16" text-anchor="middle">{{ text_of(tick) }}</text>
      <text class="axl" :x="W - 6" :y="H - 4" text-anchor="end">{{ xlabel }}</text><text class="axl" :x="W - 6" y="11" text-anchor="end">{{ ylabel }}</text>
      <path v-if="line && points.length > 1" :d="path" fill="none" stroke="var(--accent)" stroke-width="1.5"/>
      <g v-for="point in points" :key="point.n" class="point" :class="{on: point.n === chosen, ok: point.ok}" role="button" tabindex="0" :aria-label="point.label"
         :aria-pressed="point.n === chosen" @click="$emit('choose', point.n)" @keydown.enter.prevent="$emit('choose', point.n)" @keydown.space.prevent="$emit('choose', point.n)">
        <title>{{ point.label }}</title><circle :cx="X(point.x)" :cy="Y(point.y)" r="9"/><text :x="X(point.x)" :y="Y(point.y) + 4" text-anchor="middle">{{ point.n }}</text></g>
    </svg>`,
  props: { points: Array, chosen: Number, xlabel: String, ylabel: String, label: String, band: Array, line: Boolean, even: Boolean, high: Number },
  data() {
    return { W: 268, H: 210, top: 22 };
  },
  mounted() {
    // As wide as its place, so that text has the same size in every chart.
    this.watcher = new ResizeObserver(() => {
      if (this.$el.clientWidth > 60) this.W = Math.max(160, this.$el.clientWidth - 24);
    });
    this.watcher.observe(this.$el);
  },
  unmounted() {
    this.watcher.disconnect();
  },
  computed: {
    most() {
      return Math.max(1, ...this.points.map((point) => point.x));
    },
    ends() {
      const values = this.points.map((point) => point.y);
      const high = Math.max(...values, this.high ?? 100), low = Math.min(...values);
      return [Math.min(low, high - 0.2 * Math.abs(high) || high - 1), high];
    },
    ticksY() {
      const [low, high] = this.ends, step = 10 ** Math.floor(Math.log10(high - low)), ticks = [];
      const by = [step / 2, step, step * 2, step * 5].find((one) => (high - low) / one <= 4.5) ?? step * 5;
      for (let tick = Math.ceil(low / by - 1e-9) * by; tick <= high + 1e-9; tick += by) ticks.push(Number(tick.toPrecision(6)));
      return ticks;
    },
    places() {
      return [...new Set(this.points.map((point) => point.x))].sort((a, b) => a - b);
    },
    ticksX() {
      if (this.even) return this.places;
      return [...new Set([0, 1, 5, 17, 50, 200, 1000, 10000].filter((tick) => tick <= this.most).concat(this.most))].filter((tick, i, all) => i === 0 || this.X(tick) - this.X(all[i - 1]) > 14);
    },
    path() {
      return [...this.points].sort((a, b) => a.x - b.x).map((point, i) => `${i ? "L" : "M"}${this.X(point.x)} ${this.Y(point.y)}`).join("");
    },
  },
  methods: {
    X(value) {
      if (this.even) return 54 + ((this.W - 80) * (this.places.indexOf(value) + 0.5)) / this.places.length;
      return 54 + ((this.W - 80) * Math.sqrt(value)) / Math.sqrt(this.most);
    },
    Y(value) {
      const [low, high] = this.ends;
      return this.top + 14 + (1 - (value - low) / (high - low)) * (this.H - this.top - 62);
    },
    text_of(value) {
      return Math.abs(value) >= 10000 ? Math.round(value / 1000) + "k" : String(value);
    },
  },
};
