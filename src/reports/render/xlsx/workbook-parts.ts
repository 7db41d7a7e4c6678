const xmlHead = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n`;
const office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
const packages = "http://schemas.openxmlformats.org/package/2006";
const spreadsheetMl = "application/vnd.openxmlformats-officedocument.spreadsheetml";
const sheetNamespace = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";

/**
 * Stands first, before it is known how many sheets there are: whatever is not named is a sheet (ECMA-376 part 2, 7.2.3.2).
 */
export const contentTypesXml = `${xmlHead}<Types xmlns="${packages}/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="${spreadsheetMl}.worksheet+xml"/><Override PartName="/xl/workbook.xml" ContentType="${spreadsheetMl}.sheet.main+xml"/><Override PartName="/xl/styles.xml" ContentType="${spreadsheetMl}.styles+xml"/></Types>`;

export const packageRelationsXml = `${xmlHead}<Relationships xmlns="${packages}/relationships"><Relationship Id="rId1" Type="${office}/officeDocument" Target="xl/workbook.xml"/></Relationships>`;

export const sheetFile = (n: number): string => `xl/worksheets/sheet${n + 1}.xml`;

/** `xl/workbook.xml`. The names are ours: of reports, with a number. Pure. */
export function workbookXml(sheets: readonly string[]): string {
  const listed = sheets.map(
    (name, n) => `<sheet name="${name}" sheetId="${n + 1}" r:id="rId${n + 1}"/>`,
  );
  return `${xmlHead}<workbook xmlns="${sheetNamespace}" xmlns:r="${office}"><sheets>${listed.join("")}</sheets></workbook>`;
}

/** `xl/_rels/workbook.xml.rels`. Pure. */
export function workbookRelationsXml(sheets: readonly string[]): string {
  const listed = sheets.map(
    (_, n) =>
      `<Relationship Id="rId${n + 1}" Type="${office}/worksheet" Target="worksheets/sheet${n + 1}.xml"/>`,
  );
  return `${xmlHead}<Relationships xmlns="${packages}/relationships">${listed.join("")}<Relationship Id="rId${sheets.length + 1}" Type="${office}/styles" Target="styles.xml"/></Relationships>`;
}

/** The beginning of a sheet, up to its rows; with a first row that stays in sight. Pure. */
export function sheetStart(widths: readonly number[], isFrozen: boolean): string {
  const pane = `<sheetViews><sheetView workbookViewId="0"><pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews>`;
  const columns = widths.map(
    (width, n) => `<col min="${n + 1}" max="${n + 1}" width="${width}" customWidth="1"/>`,
  );
  return `${xmlHead}<worksheet xmlns="${sheetNamespace}">${isFrozen ? pane : ""}<cols>${columns.join("")}</cols><sheetData>`;
}

export const sheetEnd = `</sheetData></worksheet>`;
